"""JSON and tool calls, where the request demanded them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_common.messages import Reason

JSON_CHARS = 262_144
"""A longer document is not parsed."""
FENCED = regex.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", regex.DOTALL)


class Document:
    """Keeps the text of an answer that must be JSON."""

    __slots__ = ("_parts", "_size", "wanted")

    def __init__(self, context: RequestContext) -> None:
        self.wanted = context.demands_json or context.tools is not None
        self._parts: list[str] = []
        self._size = 0

    def feed(self, delta: str) -> None:
        """Keep a piece while there is room."""
        if self.wanted and self._size <= JSON_CHARS:
            self._parts.append(delta)
            self._size += len(delta)

    @property
    def text(self) -> str | None:
        """The whole answer; None when it is not needed or too long."""
        return "".join(self._parts) if self.wanted and self._size <= JSON_CHARS else None


def broken_json(text: str, required: Sequence[str] = ()) -> Finding | None:
    """Find an answer that is not one JSON value, or lacks a key that the schema demands."""
    fenced = FENCED.fullmatch(text)
    try:
        value = json.loads(fenced.group(1) if fenced else text, parse_constant=refused)
    except (ValueError, RecursionError):
        return Finding(Reason.BROKEN_JSON, 1.0, 0.0, 0, len(text))
    if required and not (isinstance(value, dict) and all(key in value for key in required)):
        return Finding(Reason.BROKEN_JSON, 1.0, 0.0, 0, len(text))
    return None


def refused(word: str) -> None:
    """Refuse what Python reads and JSON does not have: NaN and the infinities."""
    raise ValueError(word)


def written_call(text: str, tools: Mapping[str, Sequence[str]]) -> Finding | None:
    """Find a tool call that is shown to the user as text."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    named = isinstance(value, dict) and value.get("name") in tools
    if not named or not {"arguments", "parameters"} & set(value):
        return None
    return broken_call(len(text))


def bad_calls(
    calls: Sequence[Mapping[str, Any]], tools: Mapping[str, Sequence[str]] | None
) -> Finding | None:
    """Find calls of unknown tools, and arguments that are no JSON object or lack a part."""
    if all(is_sound(call.get("function"), tools) for call in calls):
        return None
    return broken_call(0)


def broken_call(end: int) -> Finding:
    """Name a broken tool call."""
    return Finding(Reason.BROKEN_TOOL_CALL, 1.0, 0.0, 0, end)


def is_sound(function: object, tools: Mapping[str, Sequence[str]] | None) -> bool:
    """Return True for a call that a client can carry out."""
    if not isinstance(function, Mapping):
        # Other kinds of tools have no function; nothing is known about them.
        return True
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (ValueError, RecursionError, TypeError):
        return False
    if not isinstance(arguments, dict):
        return False
    required = (tools or {}).get(str(function.get("name")))
    if required is None:
        return not tools
    return all(name in arguments for name in required)
