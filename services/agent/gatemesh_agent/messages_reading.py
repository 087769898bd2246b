"""Reads what `/v1/messages` answers: whole, or event by event. Pure.

Source: vLLM 0.32.0, entrypoints/anthropic; whole answers and streams of a real engine.
"""

import json
from collections.abc import Mapping
from typing import Any

from gatemesh_agent.reading import NOTHING, OTHER, Part, Reading, call_reading, joined

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""By stop reason, as chat completions say it."""

EVENTS_OF_BLOCKS = ("content_block_start", "content_block_delta")


def read(fields: Mapping[str, Any]) -> Part | None:
    """Return what one event, or a whole answer, holds; None when it holds nothing to judge."""
    kind = fields.get("type")
    if kind == "message":
        return whole(fields)
    if kind == "message_delta":
        return Part(0, NOTHING, finish_of(fields.get("delta")))
    if kind in EVENTS_OF_BLOCKS:
        reading = read_event(fields)
        return None if reading is None else Part(0, reading, None)
    return None


def read_event(fields: Mapping[str, Any]) -> Reading | None:
    """Return what the start of a block, or a piece of one, says."""
    part = fields.get("content_block") or fields.get("delta")
    if not isinstance(part, Mapping):
        return None
    kind = part.get("type")
    if kind in ("text", "text_delta"):
        return text_reading(part.get("text"))
    if kind == "tool_use":
        return call_reading(fields.get("index"), part.get("name"), None)
    if kind == "input_json_delta":
        return call_reading(fields.get("index"), None, part.get("partial_json"))
    return OTHER


def text_reading(text: object) -> Reading:
    """Return a piece of visible text."""
    return NOTHING._replace(text=text if isinstance(text, str) else "")


def whole(message: Mapping[str, Any]) -> Part:
    """Return what a whole answer holds."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    readings = [
        read_block(place, block) for place, block in enumerate(blocks) if isinstance(block, Mapping)
    ]
    return Part(0, joined(readings), finish_of(message))


def read_block(place: int, block: Mapping[str, Any]) -> Reading:
    """Return what one block of a whole answer holds."""
    kind = block.get("type")
    if kind == "text":
        return text_reading(block.get("text"))
    if kind == "tool_use":
        return call_reading(place, block.get("name"), json.dumps(block.get("input")))
    return OTHER


def finish_of(holder: object) -> str | None:
    """Return why an answer ended, as chat completions say it; None when it did not end in order."""
    reason = holder.get("stop_reason") if isinstance(holder, Mapping) else None
    return FINISH_REASONS.get(str(reason))
