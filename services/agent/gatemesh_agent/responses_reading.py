"""Reads what `/v1/responses` answers: whole, or event by event. Pure.

Source: vLLM 0.32.0, entrypoints/openai/responses; whole answers and streams of a real engine.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gatemesh_agent.gates.steps import steps_of_chat
from gatemesh_agent.reading import NOTHING, OTHER, Part, Reading, call_reading, joined

CALL_TYPES = ("function_call", "custom_tool_call")
FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""By the reason of an incomplete answer, as chat completions say it."""
ENDING_EVENTS = ("response.completed", "response.incomplete")


def read(fields: Mapping[str, Any]) -> Part | None:
    """Return what one event, or a whole answer, holds; None when it holds nothing to judge."""
    kind = fields.get("type")
    if not isinstance(kind, str):
        return whole(fields) if isinstance(fields.get("output"), list) else None
    if kind in ENDING_EVENTS:
        # Its output repeats what the events before it told.
        response = fields.get("response")
        return Part(0, NOTHING, finish_of(response)) if isinstance(response, Mapping) else None
    reading = read_event(kind, fields)
    return None if reading is None else Part(0, reading, None)


def read_event(kind: str, fields: Mapping[str, Any]) -> Reading | None:
    """Return what an event adds; what closes a part only repeats it."""
    if kind == "response.output_text.delta":
        return text_reading(fields.get("delta"), fields.get("logprobs"))
    if kind == "response.output_item.added":
        return read_opening(fields)
    if kind == CALL_DELTA:
        return call_reading(fields.get("output_index"), None, fields.get("delta"))
    if kind.endswith(".delta"):
        return OTHER
    return None


CALL_DELTA = "response.function_call_arguments.delta"


def read_opening(fields: Mapping[str, Any]) -> Reading | None:
    """Return what a new item says: the name of a call, or that there is other output."""
    item = fields.get("item")
    kind = item.get("type") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or kind == "message":
        return None
    if kind == "function_call":
        return call_reading(fields.get("output_index"), item.get("name"), item.get("arguments"))
    return OTHER


def text_reading(text: object, logprobs: object) -> Reading:
    """Return a piece of visible text with its steps."""
    steps = steps_of_chat({"content": logprobs}) if logprobs else ()
    return Reading(text if isinstance(text, str) else "", steps, other_output=False, calls=())


def whole(response: Mapping[str, Any]) -> Part:
    """Return what a whole answer holds."""
    readings = [read_item(place, item) for place, item in enumerate(items_of(response))]
    return Part(0, joined(readings), finish_of(response))


def read_item(place: int, item: Mapping[str, Any]) -> Reading:
    """Return what one item of the output holds."""
    kind = item.get("type")
    if kind == "function_call":
        return call_reading(place, item.get("name"), item.get("arguments"))
    if kind != "message":
        return OTHER
    return joined(list(texts_of(item)))


def texts_of(message: Mapping[str, Any]) -> Iterator[Reading]:
    """Yield the parts of a message: text, or a refusal."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            is_text = part.get("type") == "output_text"
            yield text_reading(part.get("text"), part.get("logprobs")) if is_text else OTHER


def items_of(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the items of an answer's output."""
    output = response.get("output")
    listed = output if isinstance(output, list) else ()
    return [item for item in listed if isinstance(item, Mapping)]


def finish_of(response: Mapping[str, Any]) -> str | None:
    """Return why an answer ended, as chat completions say it; None when it did not end in order."""
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return FINISH_REASONS.get(str(reason))
    if response.get("status") != "completed":
        return None
    called = any(item.get("type") in CALL_TYPES for item in items_of(response))
    return "tool_calls" if called else "stop"
