"""Reads one choice of an answer or event: its text, its steps and its tool calls. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from gatemesh_agent.gates.steps import TokenStep, steps_of_chat, steps_of_completion

LONGEST_CALL_CHARS = 2**18
"""Of the arguments of all calls of one choice; longer ones are not held to be judged."""
MOST_CALLS = 128


class Reading(NamedTuple):
    """What one event, or a whole answer, holds of one choice."""

    text: str
    steps: tuple[TokenStep, ...]
    other_output: bool
    """True when there is output outside the text: reasoning, a refusal, sound."""
    calls: Sequence[Mapping[str, Any]]
    """Tool calls, whole or in fragments."""


NOTHING = Reading("", (), other_output=False, calls=())
OTHER = NOTHING._replace(other_output=True)
"""Output outside the text."""


reading_of: Callable[[tuple[Any, ...]], Reading] = partial(tuple.__new__, Reading)
"""Makes one of its parts, in order; a third of the price of naming them."""


class Part(NamedTuple):
    """What one event, or a whole answer, holds of one choice, and how that ended."""

    choice: int
    reading: Reading
    finish_reason: str | None
    """As chat completions say it; None while the answer goes on."""


part_of: Callable[[tuple[Any, ...]], Part] = partial(tuple.__new__, Part)
"""Makes one of its parts, in order; a third of the price of naming them."""


def read_choice(choice: Mapping[str, Any], top_logprobs: int | None) -> Reading:
    """Read a choice of either route, streamed or whole; what is odd counts as absent."""
    logprobs = choice.get("logprobs")
    text = choice.get("text")
    if isinstance(text, str):
        steps = steps_of_completion(logprobs, top_logprobs, text) if logprobs else ()
        return Reading(text, steps, other_output=False, calls=())
    part = choice.get("delta") or choice.get("message")
    if not isinstance(part, dict):
        part = {}
    content = part.get("content")
    said = content if isinstance(content, str) else ""
    steps = steps_of_chat(logprobs) if logprobs else ()
    if not part.keys() - PLAIN:
        # Nearly every delta; looking for each kind of other output takes as long as all the rest.
        return Reading(said, steps, False, ())  # noqa: FBT003
    return Reading(
        said,
        steps,
        other_output=any(part.get(name) for name in OTHER_OUTPUT),
        calls=calls_in(part),
    )


def call_reading(place: object, name: object, arguments: object) -> Reading:
    """Return a call, or a piece of one, as chat completions say it."""
    function = {"name": name, "arguments": arguments}
    return NOTHING._replace(calls=({"index": place, "function": function},))


def joined(readings: Sequence[Reading]) -> Reading:
    """Return what several readings of one choice hold together."""
    return Reading(
        "".join(one.text for one in readings),
        tuple(step for one in readings for step in one.steps),
        other_output=any(one.other_output for one in readings),
        calls=[call for one in readings for call in one.calls],
    )


PLAIN = frozenset({"role", "content"})
OTHER_OUTPUT = ("reasoning", "reasoning_content", "refusal", "audio", "function_call")


def calls_in(part: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tool calls of a message, or their fragments in a delta."""
    calls = part.get("tool_calls")
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return ()
    return [call for call in calls if isinstance(call, Mapping)]


@dataclass(slots=True)
class CallParts:
    """Tool calls put together from the fragments of a stream."""

    names: dict[int, str] = field(default_factory=dict)
    arguments: dict[int, list[str]] = field(default_factory=dict)
    chars: int = 0
    complete: bool = True
    """False once they were too long to be held."""

    def add(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Take fragments, or whole calls."""
        for place, call in enumerate(calls):
            index = call.get("index", place)
            function = call.get("function")
            if isinstance(index, int) and isinstance(function, Mapping):
                self._add(index, function)

    def _add(self, index: int, function: Mapping[str, Any]) -> None:
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str):
            self.names.setdefault(index, name)
        fragments = self.arguments.setdefault(index, [])
        if isinstance(arguments, str):
            self.chars += len(arguments)
            fragments.append(arguments)
        if self.chars > LONGEST_CALL_CHARS or len(self.arguments) > MOST_CALLS:
            self.complete = False
            self.arguments.clear()

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls as a whole answer has them."""
        return [
            {"function": {"name": self.names.get(index), "arguments": "".join(fragments)}}
            for index, fragments in sorted(self.arguments.items())
        ]
