"""What `/v1/responses` says, whole or in events, is read as chat completions say it."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.reading import CallParts, Part
from gatemesh_agent.responses_reading import read
from gatemesh_agent.responses_stripping import part
from gatemesh_agent.sse import EventSplitter, json_start

ANSWERS = Path(__file__).resolve().parents[2] / "data" / "answers"
CHANGING = ("id", "item_id", "created_at")


def events_of(name: str) -> list[bytes]:
    """Return the events of a recorded stream."""
    return EventSplitter().feed((ANSWERS / name).read_bytes())


def read_all(events: list[dict[str, Any]]) -> tuple[str, list[Part]]:
    """Return the text of a stream, and what its events said."""
    parts = [found for event in events if (found := read(event)) is not None]
    return "".join(one.reading.text for one in parts), parts


def settled(value: Any) -> Any:
    """Return an answer without what differs between two equal requests."""
    if isinstance(value, dict):
        return {name: settled(each) for name, each in value.items() if name not in CHANGING}
    return [settled(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["response_stream.sse", "response_stream_top2.sse"])
def test_a_recorded_stream_is_read(name: str) -> None:
    """The text once, although its end repeats it; the limit ended it."""
    events = [json.loads(event[json_start(event) :]) for event in events_of(name)]
    text, parts = read_all(events)
    assert text == events[-1]["response"]["output"][0]["content"][0]["text"]
    assert [one.finish_reason for one in parts if one.finish_reason] == ["length"]
    steps = [step for one in parts for step in one.reading.steps]
    assert len(steps) == (10 if "top2" in name else 0)
    assert "".join(step.text for step in steps) == (text if steps else "")
    assert all(len(step.top_logprobs) == 2 for step in steps)


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("response_stream_top2.sse", "response_stream.sse"),
        ("response_whole_top0.json", "response_whole.json"),
    ],
)
def test_recorded_answers_are_equal_once_stripped(asked: str, plain: str) -> None:
    """A real engine's own bytes, with and without; only ids and times differ."""
    if asked.endswith("json"):
        both = [(part((ANSWERS / asked).read_bytes()).rest, (ANSWERS / plain).read_bytes())]
    else:
        stripped = [part(event, json_start(event)).rest for event in events_of(asked)]
        both = list(zip(stripped, events_of(plain), strict=True))
    for one, other in both:
        assert len(one) == len(other)
        start = one.index(b"{")
        assert one[:start] == other[:start]
        mine, theirs = json.loads(one[start:]), json.loads(other[start:])
        assert settled(mine) == settled(theirs)
        assert list(mine) == list(theirs)


def test_a_recorded_whole_answer_is_read() -> None:
    """Text, steps and end."""
    found = read(json.loads((ANSWERS / "response_whole_top0.json").read_bytes()))
    assert found is not None
    assert found.finish_reason == "length"
    assert len(found.reading.steps) == 10
    assert "".join(step.text for step in found.reading.steps) == found.reading.text


CALL = {"type": "function_call", "name": "f", "arguments": '{"a":1}'}
REASONING = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}


def test_a_call_is_put_together_from_events() -> None:
    """Its name comes first, its arguments in pieces; thinking is other output."""
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": REASONING},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "function_call", "name": "f", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a":'},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "1}"},
        {"type": "response.function_call_arguments.done", "arguments": '{"a":1}'},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": [REASONING, CALL]},
        },
    ]
    text, parts = read_all(events)
    calls = CallParts()
    for one in parts:
        calls.add(one.reading.calls)
    assert (text, parts[-1].finish_reason) == ("", "tool_calls")
    assert calls.calls() == [{"function": {"name": "f", "arguments": '{"a":1}'}}]
    assert [one.reading.other_output for one in parts] == [True, True, *[False] * 4]


def test_a_whole_answer_may_hold_more_than_text() -> None:
    """Thinking, a refusal and a call."""
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    found = read({"output": [REASONING, refusal, CALL], "status": "completed"})
    assert found is not None
    assert (found.reading.text, found.reading.other_output) == ("", True)
    assert found.finish_reason == "tool_calls"
    assert [dict(call) for call in found.reading.calls] == [
        {"index": 2, "function": {"name": "f", "arguments": '{"a":1}'}}
    ]


@pytest.mark.parametrize(
    ("status", "details", "reason"),
    [
        ("completed", None, "stop"),
        ("incomplete", {"reason": "max_output_tokens"}, "length"),
        ("incomplete", {"reason": "content_filter"}, "content_filter"),
        ("incomplete", None, None),
        ("failed", None, None),
        ("in_progress", None, None),
    ],
)
def test_how_it_ended(status: str, details: Any, reason: str | None) -> None:
    """What did not end in order proves nothing by its end."""
    response = {"output": [], "status": status, "incomplete_details": details}
    whole, event = read(response), read({"type": "response.completed", "response": response})
    assert whole is not None
    assert event is not None
    assert whole.finish_reason == event.finish_reason == reason


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"error": {"message": "x"}},
        {"type": "error"},
        {"type": "response.completed"},
        {"type": "response.output_item.added"},
        {"type": "response.output_text.done", "text": "all of it"},
    ],
)
def test_what_says_nothing_new_is_nothing(fields: dict[str, Any]) -> None:
    """Every field may be absent."""
    assert read(fields) is None
