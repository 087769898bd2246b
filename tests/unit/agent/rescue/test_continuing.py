"""The rest is asked for with all that was asked before, and with nothing more."""

import json
from typing import Any

import pytest
from tests.unit.agent.rescue.streams import asking

from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.rescue.continuing import (
    Continuation,
    Tokenized,
    by_ids,
    by_text,
    count_body,
    goes_by_ids,
    the_prompt,
    tokenize_body,
    written,
)
from gatemesh_agent.rescue.kept import Kept

KEPT = Kept("Hello there", (7, 8, 9), 3)
PROMPT = Tokenized((1, 2), 100)


def body_of(continuation: Continuation) -> dict[str, Any]:
    """Return what is sent."""
    return json.loads(continuation.asked.raw)  # type: ignore[no-any-return]


def test_a_chat_goes_on_as_a_completion_of_its_tokens() -> None:
    """With the same sampling, and as many tokens less as were said."""
    asked = asking(
        max_completion_tokens=20, min_tokens=5, top_p=0.9, seed=4, messages=[], metadata={"a": "b"}
    )
    rest = by_ids(asked, KEPT, PROMPT)
    assert rest.path == "/v1/completions"
    assert (rest.tokens, rest.prompt_tokens) == (3, 2)
    assert body_of(rest) == {
        "model": "m",
        "stream": True,
        "temperature": 0,
        "top_p": 0.9,
        "seed": 4,
        "min_tokens": 2,
        "max_tokens": 17,
        "prompt": [1, 2, 7, 8, 9],
    }


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        (asking(), 95),
        (asking(max_tokens=2), 1),
        (asking(Route.COMPLETIONS), 13),
        (asking(Route.COMPLETIONS, max_tokens=50), 47),
    ],
)
def test_the_limit_is_what_is_left_of_it(asked: Asked, limit: int) -> None:
    """Of the client's own, of the model's room, or of the engine's usual one."""
    assert body_of(by_ids(asked, KEPT, PROMPT))["max_tokens"] == limit


def test_where_the_engine_knows_the_limit_none_is_named() -> None:
    """As for a completion that is beyond the usual one already."""
    kept = Kept("x", tuple(range(20)), 20)
    assert "max_tokens" not in body_of(by_ids(asking(Route.COMPLETIONS), kept, PROMPT))


def test_a_completion_by_text_keeps_the_usual_limit() -> None:
    """The engine would begin to count anew."""
    asked = asking(Route.COMPLETIONS, stop=["."])
    assert body_of(by_text(asked, KEPT))["max_tokens"] == 13


def test_a_chat_goes_on_in_its_own_turn() -> None:
    """Without the blank at its end, which is said again and swallowed."""
    rest = by_text(asking(max_tokens=9, tools=[]), Kept("Hello \n", None, 2))
    sent = body_of(rest)
    assert rest.swallows == " \n"
    assert sent["messages"][-1] == {"role": "assistant", "content": "Hello"}
    assert (sent["add_generation_prompt"], sent["continue_final_message"]) == (False, True)
    assert (sent["max_tokens"], sent["tools"]) == (7, [])


def test_a_turn_that_the_client_began_stays_one() -> None:
    """Its text and what was said follow each other."""
    begun = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "One, "}]
    asked = asking(messages=begun, continue_final_message=True, add_generation_prompt=False)
    assert body_of(by_text(asked, Kept("two", None, 1)))["messages"][-1]["content"] == "One, two"


def test_a_completion_goes_on_behind_its_prompt() -> None:
    """Of text, that is."""
    asked = asking(Route.COMPLETIONS, max_tokens=9)
    assert body_of(by_text(asked, Kept(" hi", None, 1)))["prompt"] == "Say hi"
    assert the_prompt({"prompt": ["one"]}) == "one"
    with pytest.raises(ValueError, match="not a prompt"):
        the_prompt({"prompt": [1, 2]})


def test_nothing_but_blanks_is_asked_anew() -> None:
    """And the blanks are swallowed."""
    asked = asking()
    assert by_text(asked, Kept("\n\n", None, 1)) == Continuation(asked, swallows="\n\n")


@pytest.mark.parametrize(
    ("asked", "kept", "goes"),
    [
        (asking(), KEPT, True),
        (asking(stop=[], tools=None, response_format={"type": "text"}), KEPT, True),
        (asking(Route.COMPLETIONS, unknown=1), KEPT, True),
        (asking(), Kept("a", None, 1), False),
        (asking(stop="x"), KEPT, False),
        (asking(tools=[{}]), KEPT, False),
        (asking(logprobs=True), KEPT, False),
        (asking(reasoning_effort="low"), KEPT, False),
        (asking(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), KEPT, False),
    ],
)
def test_ids_are_taken_where_they_mean_the_same(asked: Asked, kept: Kept, goes: bool) -> None:  # noqa: FBT001
    """Everything else goes on by text, by its own route."""
    assert goes_by_ids(asked, kept) == goes


def test_a_prompt_is_tokenized_as_the_engine_would() -> None:
    """With its template's arguments."""
    asked = asking(chat_template_kwargs={"a": 1}, max_tokens=4)
    assert json.loads(tokenize_body(asked)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Say hi"}],
        "chat_template_kwargs": {"a": 1},
    }
    asked = asking(Route.COMPLETIONS, max_tokens=4, add_special_tokens=False)
    assert json.loads(tokenize_body(asked)) == {
        "model": "m",
        "prompt": "Say",
        "add_special_tokens": False,
    }
    assert json.loads(count_body(asked, "hi")) == {
        "model": "m",
        "prompt": "hi",
        "add_special_tokens": False,
    }


def test_lone_surrogates_are_written() -> None:
    """Engines take them."""
    assert json.loads(written({"a": "\ud800"})) == {"a": "\ud800"}
