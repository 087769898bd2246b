"""An answer gone on with from any cut is the rest of the uncut one."""

from collections.abc import Callable
from typing import Any

import pytest

from gatemesh_engine_sim.answering import healthy_steps
from gatemesh_engine_sim.continuing import question_before, rest_of, start_of_answer, turn_under_way
from gatemesh_engine_sim.intake import Asked, Route
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import Steps, text_of

Ask = Callable[..., Asked]

ROOM = 2_000
QUESTIONS = (
    "Tell me a story.",
    "What is the capital of France?",
    "请解释一下光合作用。",
    "Write 120 words about the sea.",
    'Say "🌸 你好 naïve"',
)

BEGUN = {"continue_final_message": True, "add_generation_prompt": False, "max_tokens": ROOM}


def said(asked: Asked, library: Library) -> Steps:
    """What a healthy engine says."""
    return healthy_steps(asked, library, 0)[0]


def ids_of(steps: Steps) -> list[int]:
    """The ids of the steps."""
    return [step.token_id for step in steps]


def chat(question: str) -> dict[str, Any]:
    """One question as a conversation."""
    return {"messages": [{"role": "user", "content": question}], "max_tokens": ROOM}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("seed", [0, 7])
def test_chat_by_ids_from_every_cut(ask: Ask, library: Library, question: str, seed: int) -> None:
    """Also right before its end, where only the end is left."""
    asked = ask(**chat(question), seed=seed)
    whole = said(asked, library)
    for cut in range(len(whole)):
        prompt = [*asked.prompt_ids, *ids_of(whole[:cut])]
        on = ask(Route.COMPLETIONS, max_tokens=ROOM, prompt=prompt, seed=seed)
        assert ids_of(said(on, library)) == ids_of(whole[cut:])


@pytest.mark.parametrize("question", QUESTIONS)
def test_chat_by_text_from_every_character(ask: Ask, library: Library, question: str) -> None:
    """Within a token, too."""
    text = text_of(said(ask(**chat(question)), library))
    for cut in range(1, len(text)):
        messages = [*chat(question)["messages"], {"role": "assistant", "content": text[:cut]}]
        on = ask(**BEGUN, messages=messages)
        assert text_of(said(on, library)) == text[cut:]


@pytest.mark.parametrize("question", QUESTIONS)
def test_plain_prompt_from_every_cut(ask: Ask, library: Library, question: str) -> None:
    """By ids and by text."""
    asked = ask(Route.COMPLETIONS, max_tokens=ROOM, prompt=question)
    whole = said(asked, library)
    for cut in range(0, len(whole), 3):
        prompt = [*asked.prompt_ids, *ids_of(whole[:cut])]
        on = said(ask(Route.COMPLETIONS, max_tokens=ROOM, prompt=prompt), library)
        assert ids_of(on) == ids_of(whole[cut:])
        begun = text_of(whole[:cut])
        on = said(ask(Route.COMPLETIONS, max_tokens=ROOM, prompt=question + begun), library)
        assert text_of(on) == text_of(whole)[len(begun) :]


def test_a_foreign_beginning_is_gone_on_with(ask: Ask, library: Library) -> None:
    """From the same place: an engine says something after whatever it is given."""
    asked = ask(**chat("Tell me a story."))
    whole = said(asked, library)
    on = ask(Route.COMPLETIONS, max_tokens=ROOM, prompt=[*asked.prompt_ids, 999, 999])
    assert ids_of(said(on, library)) == ids_of(whole[2:])
    messages = [*chat("Tell me a story.")["messages"], {"role": "assistant", "content": "§§"}]
    on = ask(**BEGUN, messages=messages)
    assert text_of(said(on, library)) == text_of(whole)[2:]


def test_a_plain_prompt_whose_answer_went_astray(ask: Ask, library: Library) -> None:
    """It goes on from the same place of the answer that it began with."""
    asked = ask(Route.COMPLETIONS, max_tokens=ROOM, prompt="Tell me a story.")
    whole = said(asked, library)
    astray = [*asked.prompt_ids, *ids_of(whole[:20]), 999, 999]
    on = ask(Route.COMPLETIONS, max_tokens=ROOM, prompt=astray)
    assert ids_of(said(on, library)) == ids_of(whole[22:])
    begun = text_of(whole[:20]) + "§§"
    on = ask(Route.COMPLETIONS, max_tokens=ROOM, prompt="Tell me a story." + begun)
    assert text_of(said(on, library)) == text_of(whole)[len(begun) :]


def test_other_beginnings_are_told_apart(library: Library) -> None:
    """Nothing is the rest of what an answer does not begin with."""
    steps = library.written("Hello world.")
    assert rest_of(steps, "Hallo", library) is None
    assert rest_of(steps, [1, 2], library) is None
    assert rest_of(steps, "Hello world. And", library) is None
    assert rest_of(steps, "Hello world.", library) == (library.end,)


def test_a_turn_that_ended_is_not_under_way(ask: Ask, library: Library) -> None:
    """Nor is a prompt without one."""
    ids = [*ask(**chat("Hi")).prompt_ids, *library.vocabulary.encode("Hello"), 2]
    assert turn_under_way(ids, library.vocabulary) is None
    assert turn_under_way([500, 501], library.vocabulary) is None
    assert start_of_answer([500, 501], library.vocabulary) is None
    assert question_before(ids, library.vocabulary) == "Hi"
