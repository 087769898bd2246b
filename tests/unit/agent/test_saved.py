"""Answers are read however they were saved; what is odd is told with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.saved import SavedAnswer, SavedError, read_lines, read_saved

ANSWERS = Path(__file__).resolve().parents[2] / "data" / "answers"
REQUEST = {"messages": [{"role": "user", "content": "Hi"}], "logprobs": True}
CHAT = {"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]}
EVENT = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": None}]}
CASE: dict[str, Any] = {
    "id": "c1",
    "request": REQUEST,
    "response": {
        "text": "Hello.",
        "finish_reason": "stop",
        "logprobs": [{"token": "Hel", "logprob": -1, "top": [["Hel", -1], ["Hi", -2]]}],
    },
    "expect": "pass",
}
RECORDED = {"request": REQUEST, "status": 200, "body": json.dumps(CHAT)}


def read(value: object, name: str = "file") -> list[SavedAnswer]:
    """Return the answers in a value, written as JSON unless it is bytes."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return list(read_saved(data, name, {}))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("response_stream.sse", "Bonjour, je ne sais qua le", "length"),
        ("response_whole.json", "Bonjour, je ne sais qua le", "length"),
        ("message_stream.sse", "Bonjour, welcome to la légère.", "length"),
        ("message_whole_stop.json", "B", "stop"),
    ],
)
def test_recorded_answers_of_both_routes_are_read(name: str, text: str, reason: str) -> None:
    """Whole or as a captured stream."""
    [answer] = read((ANSWERS / name).read_bytes(), name)
    [choice] = answer.choices
    assert (answer.label, choice.text, choice.finish_reason) == (name, text, reason)


def sse(*events: object) -> bytes:
    """Write a stream."""
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events)


def test_a_captured_chat_stream_is_read() -> None:
    """A stream that was cut off has no finish reason."""
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    [answer] = read(b": keep-alive\n\n" + sse(EVENT, end) + b"data: [DONE]\n\n")
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("Hello.", "stop")
    [torn] = read(sse(EVENT))
    assert torn.choices[0].finish_reason is None


def test_choices_are_told_apart() -> None:
    """Their events come in turns."""
    other = {"choices": [{"index": 1, "delta": {"content": "Hey"}, "finish_reason": "length"}]}
    [answer] = read(sse(EVENT, other, EVENT))
    assert [choice.text for choice in answer.choices] == ["Hello.Hello.", "Hey"]


def test_a_case_brings_its_steps_with_its_text() -> None:
    """So a gate that needs both sees them side by side."""
    [answer] = read(CASE)
    [choice] = answer.choices
    assert (answer.label, answer.expect, choice.text) == ("c1", "pass", "Hello.")
    [step] = choice.steps
    assert step.top_logprobs == (-1, -2)
    assert [reading.text for reading in choice.readings] == ["Hel", "lo.", ""]


def test_lines_of_every_kind_may_be_mixed() -> None:
    """Empty lines are none."""
    lines = b"\n".join(json.dumps(each).encode() for each in (CASE, RECORDED, CHAT))
    labels = [answer.label for answer in read(lines + b"\n\n")]
    assert labels == ["c1", "file, line 2", "file, line 3"]
    assert len(list(read_lines(lines, "x"))) == 3


def test_a_recorded_stream_and_a_refusal_are_read() -> None:
    """A refusal is kept as it was: it may be proof."""
    [streamed] = read({**RECORDED, "body": sse(EVENT).decode()})
    assert streamed.choices[0].text == "Hello."
    [refused] = read({**RECORDED, "status": 400, "body": "no"})
    assert (refused.status, refused.body, refused.choices) == (400, b"no", ())
    [bare] = read({"error": {"message": "x"}})
    assert bare.status == 400


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "file is empty"),
        (b"[1]", "line 1: not a JSON object"),
        (b"{}\n{", "line 1: no field that is known"),
        (b'{"choices":[]}\nx', "line 2: not JSON"),
        (b"data: {\n\n", "event 1: not JSON"),
        (b"data: [DONE]\n\n", "without an event"),
        ({"x": 1}, "no field that is known"),
        ({**CASE, "request": 5}, "field 'request' is missing"),
        ({**CASE, "response": []}, "field 'response' is missing"),
        ({**CASE, "response": {"text": 5}}, "field 'response.text'"),
        ({**CASE, "response": {"logprobs": [5]}}, "field 'response.logprobs'"),
        ({**RECORDED, "status": "200"}, "field 'status'"),
        ({"request": REQUEST, "status": 200, "body": None}, "field 'body'"),
        ({**RECORDED, "body": "x"}, "field 'body': not JSON"),
    ],
)
def test_what_is_odd_is_told_with_its_place(value: object, says: str) -> None:
    """Line and field, so that it can be repaired."""
    with pytest.raises(SavedError, match=says):
        read(value)
