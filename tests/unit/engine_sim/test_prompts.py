"""Reading prompts, and how a conversation ends."""

from typing import Any

import pytest

from gatemesh_engine_sim.continuing import ASSISTANT, NO_THOUGHTS
from gatemesh_engine_sim.errors import ApiError
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.prompts import chat_ids, chat_prompt, completion_prompt

ASK = {"role": "user", "content": "Tell me a story."}
BEGUN = {"role": "assistant", "content": "Once upon"}


def test_a_conversation_opens_the_models_turn(library: Library) -> None:
    """Unless it is told not to."""
    words = library.vocabulary
    opened = chat_ids({"messages": [ASK]}, words)
    plain = chat_ids({"messages": [ASK], "add_generation_prompt": False}, words)
    assert opened == [*plain, 1, *words.encode(ASSISTANT)]


def test_a_partial_answer_stays_open(library: Library) -> None:
    """It is the prompt with the answer's first tokens behind it."""
    words = library.vocabulary
    body = {
        "messages": [ASK, BEGUN],
        "continue_final_message": True,
        "add_generation_prompt": False,
    }
    found = chat_prompt(body, words)
    assert list(found.ids) == chat_ids({"messages": [ASK]}, words) + words.encode("Once upon")
    assert (found.question, found.begun) == ("Tell me a story.", "Once upon")


def test_two_ends_contradict_each_other(library: Library) -> None:
    """The default opens a turn."""
    body = {"messages": [ASK, BEGUN], "continue_final_message": True}
    with pytest.raises(ApiError, match="not compatible"):
        chat_ids(body, library.vocabulary)


def test_tools_and_thoughts_are_in_the_prompt(library: Library) -> None:
    """A template writes both; the answer begins behind them."""
    words = library.vocabulary
    body: dict[str, Any] = {"messages": [ASK], "tools": [{"type": "function"}]}
    assert len(chat_ids(body, words)) > len(chat_ids({"messages": [ASK]}, words))
    quiet = {"messages": [ASK], "chat_template_kwargs": {"enable_thinking": False}}
    ids = chat_ids(quiet, words)
    assert ids[-len(words.encode(NO_THOUGHTS)) :] == words.encode(NO_THOUGHTS)
    assert completion_prompt({"prompt": [*ids, 300]}, words).begun == [300]


def test_ids_of_a_conversation_are_read_back(library: Library) -> None:
    """The question, and what of the answer there is."""
    words = library.vocabulary
    ids = chat_ids({"messages": [{"role": "system", "content": "Be kind."}, ASK]}, words)
    found = completion_prompt({"prompt": [*ids, *words.encode("Once")]}, words)
    assert (found.question, list(found.begun)) == ("Tell me a story.", words.encode("Once"))
    assert found.plain is None


def test_a_plain_prompt_is_its_own_question(library: Library) -> None:
    """As text and as ids."""
    words = library.vocabulary
    ids = words.encode("The sea is")
    assert completion_prompt({"prompt": "The sea is"}, words).plain == "The sea is"
    assert completion_prompt({"prompt": ids}, words).plain == tuple(ids)
    assert completion_prompt({"prompt": ids}, words).question == "The sea is"


@pytest.mark.parametrize("prompt", [None, "", [], [["x"]], {}])
def test_no_prompt(library: Library, prompt: Any) -> None:
    """Refused."""
    with pytest.raises(ApiError):
        completion_prompt({"prompt": prompt}, library.vocabulary)
