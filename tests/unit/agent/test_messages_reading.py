"""What `/v1/messages` says, whole or in events, is read as chat completions say it."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.messages_reading import read
from gatemesh_agent.reading import CallParts
from gatemesh_agent.sse import EventSplitter, json_start

ANSWERS = Path(__file__).resolve().parents[2] / "data" / "answers"


def test_a_recorded_stream_is_read() -> None:
    """Text and end; it carries no log probabilities."""
    events = EventSplitter().feed((ANSWERS / "message_stream.sse").read_bytes())
    parts = [found for event in events if (found := read(json.loads(event[json_start(event) :])))]
    assert "".join(one.reading.text for one in parts) == "Bonjour, welcome to la légère."
    assert [one.finish_reason for one in parts if one.finish_reason] == ["length"]
    assert not any(one.reading.other_output or one.reading.steps for one in parts)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("message_whole.json", "Bonjour! I'm a French language tutor.", "length"),
        ("message_whole_stop.json", "B", "stop"),
    ],
)
def test_a_recorded_whole_answer_is_read(name: str, text: str, reason: str) -> None:
    """A stop sequence ends it as a stop string does."""
    found = read(json.loads((ANSWERS / name).read_bytes()))
    assert found is not None
    assert (found.reading.text, found.finish_reason) == (text, reason)


def test_a_call_is_put_together_from_events() -> None:
    """A block of thinking before it is other output."""
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "hm"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "name": "f", "input": {}},
        },
        *(
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in ('{"a":', "1}")
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    parts = [found for event in events if (found := read(event)) is not None]
    calls = CallParts()
    for one in parts:
        calls.add(one.reading.calls)
    assert calls.calls() == [{"function": {"name": "f", "arguments": '{"a":1}'}}]
    assert parts[-1].finish_reason == "tool_calls"
    assert [one.reading.other_output for one in parts] == [True, True, *[False] * 4]


def test_a_whole_answer_may_hold_more_than_text() -> None:
    """Thinking and a call, whose input is an object here."""
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "ok"},
        {"type": "tool_use", "name": "f", "input": {"a": 1}},
    ]
    found = read({"type": "message", "content": content, "stop_reason": "tool_use"})
    assert found is not None
    assert (found.reading.text, found.reading.other_output) == ("ok", True)
    [call] = found.reading.calls
    assert json.loads(call["function"]["arguments"]) == {"a": 1}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        (None, None),
        ("pause_turn", None),
    ],
)
def test_how_it_ended(given: str | None, reason: str | None) -> None:
    """What did not end in order proves nothing by its end."""
    found = read({"type": "message_delta", "delta": {"stop_reason": given}})
    assert found is not None
    assert found.finish_reason == reason


@pytest.mark.parametrize(
    "fields",
    [{}, {"type": "ping"}, {"type": "message_start"}, {"type": "content_block_delta"}],
)
def test_what_says_nothing_new_is_nothing(fields: dict[str, Any]) -> None:
    """Every field may be absent."""
    assert read(fields) is None
