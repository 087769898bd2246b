"""Two engines' events are one stream to the client."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.rescue.streams import event, opening, spoken, sse

from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.splicing import Head, Splice, Swallow, fields_of
from gatemesh_agent.sse import DONE

FIRST = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def head(*, role: bool = True) -> Head:
    """Return what a client has seen of the first engine."""
    seen = Head()
    seen.see(opening() if role else event("a"))
    return seen


def read(data: bytes) -> dict[str, Any]:
    """Return the JSON of an event."""
    fields = fields_of(data)
    assert fields is not None
    return fields


def test_a_completion_goes_on_as_a_chat() -> None:
    """With id, time and model of the first."""
    got = read(Splice(head(), Route.CHAT).event(spoken(" deep", finish="stop")))
    assert {name: got[name] for name in FIRST} == FIRST
    [choice] = got["choices"]
    assert choice == {
        "index": 0,
        "delta": {"content": " deep"},
        "logprobs": None,
        "finish_reason": "stop",
        "stop_reason": None,
    }


def test_a_turn_is_begun_once() -> None:
    """By whichever engine came first."""
    splice = Splice(head(), Route.CHAT)
    assert splice.event(opening("chatcmpl-2")) == b""
    got = read(splice.event(event("x", name="chatcmpl-2", role="assistant")))
    assert got["id"] == "chatcmpl-1"
    assert "role" not in got["choices"][0]["delta"]
    fresh = Splice(head(role=False), Route.CHAT)
    assert read(fresh.event(spoken("x")))["choices"][0]["delta"]["role"] == "assistant"


def test_usage_is_that_of_one_answer() -> None:
    """The prompt counts once, the kept tokens as what they are."""
    usage = {
        "prompt_tokens": 15,
        "completion_tokens": 4,
        "total_tokens": 19,
        "prompt_tokens_details": {"cached_tokens": 14},
    }
    known = Splice(head(), Route.CHAT, tokens=5, prompt_tokens=11)
    got = read(known.event(sse({"id": "2", "choices": [], "usage": usage})))
    assert got["usage"] == {
        "prompt_tokens": 11,
        "completion_tokens": 9,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 11},
    }
    unknown = Splice(head(), Route.CHAT, tokens=5)
    assert unknown.usage(usage)["prompt_tokens"] == 10


def test_offsets_of_a_completion_go_on() -> None:
    """As the client's log probabilities are its own."""
    got = read(Splice(head(), Route.COMPLETIONS, chars=40).event(spoken("x")))
    assert got["choices"][0]["logprobs"]["text_offset"] == [40]
    assert got["choices"][0]["text"] == "x"


def test_ids_of_the_longer_prompt_are_not_shown() -> None:
    """They hold the answer's."""
    fields = json.loads(spoken("x")[6:])
    fields["choices"][0] |= {"prompt_token_ids": [1, 2], "token_ids": [3]}
    got = read(Splice(head(), Route.COMPLETIONS).event(sse(fields)))
    assert got["choices"][0]["prompt_token_ids"] is None
    assert got["choices"][0]["token_ids"] == [3]
    chat = read(Splice(head(), Route.CHAT).event(sse(fields | {"prompt_token_ids": [1]})))
    assert chat["prompt_token_ids"] is None
    assert chat["choices"][0]["token_ids"] == [3]


@pytest.mark.parametrize("data", [DONE, b": keep-alive\n\n", sse({"error": {"code": 400}})])
def test_what_is_no_part_of_an_answer_passes(data: bytes) -> None:
    """Unchanged."""
    assert Splice(head(), Route.CHAT).event(data) == data


def test_an_event_about_nothing_is_left_out() -> None:
    """As engines send it before the first token."""
    assert Splice(head(), Route.CHAT).event(sse({"id": "2", "choices": []})) == b""


BLANKS = st.text(alphabet=" \n\t", max_size=5)


@given(BLANKS, st.text(alphabet="ab", min_size=1), st.lists(st.integers(1, 3), max_size=9))
def test_a_blank_end_is_said_once(blank: str, rest: str, sizes: list[int]) -> None:
    """However the second engine cuts it."""
    swallow, said, out = Swallow(blank), blank + rest, ""
    for size in [*sizes, len(said)]:
        out += swallow.text(said[:size])
        said = said[size:]
    assert out == rest


def test_what_is_left_out_is_counted() -> None:
    """So that the next engine is told what the client has got."""
    swallow = Swallow(" \n")
    assert [swallow.text(said) for said in (" ", "\n\n", "x")] == ["", "\n", "x"]
    assert swallow.taken == 2


def test_another_blank_than_the_first_is_shown() -> None:
    """From where they differ."""
    assert Swallow(" \n").text(" x") == "x"
    assert Swallow("\n\n").text(" x") == " x"


@pytest.mark.parametrize("piece", [event(" \n"), spoken(" \n")], ids=["chat", "completion"])
def test_a_token_that_was_told_before_is_left_out(piece: bytes) -> None:
    """All of it; the last one still says how the answer ended."""
    splice = Splice(head(), Route.CHAT, tokens=3, chars=9, swallow=Swallow(" \n"))
    assert splice.event(piece) == b""
    assert read(splice.event(event("x")))["choices"][0]["delta"]["content"] == "x"
    splice = Splice(head(), Route.CHAT, tokens=3, chars=9, swallow=Swallow(" \n"))
    ending = read(splice.event(event(" \n", finish="stop")))["choices"][0]
    assert (ending["delta"].get("content"), ending["finish_reason"]) == ("", "stop")


def test_so_it_is_for_completions() -> None:
    """Their events have a text of their own."""
    splice = Splice(head(role=False), Route.COMPLETIONS, tokens=3, chars=9, swallow=Swallow("\n"))
    assert splice.event(spoken("\n")) == b""
    assert read(splice.event(spoken(" x")))["choices"][0]["text"] == " x"
