"""One choice of an answer, whatever its route."""

from typing import Any

import pytest

from gatemesh_agent.reading import (
    LONGEST_CALL_CHARS,
    NOTHING,
    OTHER,
    CallParts,
    call_reading,
    joined,
    read_choice,
)

ENTRY = {
    "token": "Hi",
    "logprob": -0.5,
    "bytes": [72],
    "top_logprobs": [{"token": "Hi", "logprob": -0.5}],
}


@pytest.mark.parametrize(
    ("choice", "text", "steps"),
    [
        pytest.param(
            {"delta": {"content": "Hi"}, "logprobs": {"content": [ENTRY]}}, "Hi", 1, id="delta"
        ),
        pytest.param({"delta": {}, "logprobs": {"content": [ENTRY]}}, "", 1, id="bare-delta"),
        pytest.param({"message": {"content": "Hi"}, "logprobs": None}, "Hi", 0, id="message"),
        pytest.param({"message": {"content": None}}, "", 0, id="no-content"),
        pytest.param(
            {
                "text": "Hi",
                "logprobs": {
                    "tokens": ["Hi"],
                    "token_logprobs": [-1],
                    "top_logprobs": [{"Hi": -1}],
                },
            },
            "Hi",
            1,
            id="completion",
        ),
        pytest.param({"delta": "odd", "logprobs": 5}, "", 0, id="odd"),
        pytest.param({}, "", 0, id="nothing"),
    ],
)
def test_text_and_steps(choice: dict[str, Any], text: str, steps: int) -> None:
    """Every field may be absent."""
    reading = read_choice(choice, 20)
    assert (reading.text, len(reading.steps)) == (text, steps)
    assert not reading.other_output


def test_output_outside_the_text_is_noticed() -> None:
    """An answer that only thinks is not empty."""
    assert read_choice({"delta": {"reasoning": "hm"}}, None).other_output
    assert not read_choice({"delta": {"reasoning": ""}}, None).other_output


def test_calls_are_put_together() -> None:
    """Fragments of two calls, as a stream brings them."""
    parts = CallParts()
    for fragment in (
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a":'}},
        {"index": 1, "function": {"name": "g", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": "1}"}},
    ):
        parts.add(read_choice({"delta": {"tool_calls": [fragment]}}, None).calls)
    assert parts.calls() == [
        {"function": {"name": "f", "arguments": '{"a":1}'}},
        {"function": {"name": "g", "arguments": "{}"}},
    ]


def test_whole_calls_are_taken_as_they_are() -> None:
    """A whole answer gives them no index."""
    parts = CallParts()
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("f", "g")]
    parts.add(read_choice({"message": {"tool_calls": calls}}, None).calls)
    assert parts.calls() == calls


def test_readings_are_joined_in_order() -> None:
    """Text, steps and calls follow each other; other output anywhere is other output."""
    call = call_reading(2, "f", "{}")
    first = read_choice({"message": {"content": "a"}, "logprobs": {"content": [ENTRY]}}, None)
    found = joined([first, call, OTHER, NOTHING._replace(text="b")])
    assert (found.text, found.steps, found.other_output) == ("ab", first.steps, True)
    assert found.calls == [{"index": 2, "function": {"name": "f", "arguments": "{}"}}]
    assert joined([]) == NOTHING._replace(calls=[])


def test_calls_without_end_are_not_held() -> None:
    """Memory is bounded; such calls are not judged."""
    parts = CallParts()
    parts.add(
        [{"index": 0, "function": {"name": "f", "arguments": "x" * (LONGEST_CALL_CHARS + 1)}}]
    )
    assert not parts.complete
    assert parts.calls() == []


@pytest.mark.parametrize("calls", ["text", 5, [1, None], [{"function": 3}]])
def test_odd_calls_are_no_calls(calls: object) -> None:
    """They never stop a stream."""
    parts = CallParts()
    parts.add(read_choice({"delta": {"tool_calls": calls}}, None).calls)
    assert parts.calls() == []
