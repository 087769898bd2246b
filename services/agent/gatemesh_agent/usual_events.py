"""Reads the usual event of a chat by its likeness to the one before. Pure.

Within one stream nearly all events differ in their text and log probabilities alone. What stands
around these is compared as bytes; only they are parsed.
"""

from typing import Any

import orjson

from gatemesh_agent.gates.typed_steps import read_chat_logprobs
from gatemesh_agent.reading import Part, part_of, reading_of
from gatemesh_agent.stripping import NAME, NULL

DELTA = b'"delta":{"content":'
BETWEEN = b'},"logprobs":'
BEHIND = b'},"finish_reason":'
MOST_AROUND_BYTES = 4096
MOST_TRIES = 8
"""Events of one stream that are taken apart to be a pattern: an odd stream pays for no more."""


class UsualEvents:
    """Knows what stands around text and log probabilities in the events of one stream."""

    __slots__ = ("_before", "_behind", "_choice", "_tries")

    def __init__(self) -> None:
        self._before = self._behind = NOT_YET
        self._choice = 0
        self._tries = 0

    def read(self, event: bytes) -> tuple[bytes, Part] | None:
        """Return an event without its log probabilities, and what it says; None if it is unlike.

        What it says is what parsing all of it would tell.
        """
        before, behind = self._before, self._behind
        if not (event.startswith(before) and event.endswith(behind)):
            return None
        # No string holds a bare quote, so that nothing of the text looks like what follows it.
        text_end = event.find(BETWEEN, len(before))
        begin = text_end + len(BETWEEN)
        if text_end < 0:
            return None
        try:
            text = orjson.loads(event[len(before) : text_end])
            steps = read_chat_logprobs(event[begin : -len(behind)]).steps()
        except (ValueError, RecursionError):
            return None
        if type(text) is not str:
            return None
        reading = reading_of((text, steps, False, ()))
        return b"%b%b%b" % (event[:begin], NULL, behind), part_of((self._choice, reading, None))

    def learn(self, event: bytes, start: int, fields: dict[str, Any]) -> None:
        """Take an event, whose JSON begins at `start` and says so, as the pattern of the next."""
        begin = event.find(DELTA, start)
        end = event.rfind(BEHIND)
        if begin < 0 or end < 0 or self._tries >= MOST_TRIES:
            return
        self._tries += 1
        before, behind = event[: begin + len(DELTA)], event[end + 1 :]
        if NAME in before or NAME in behind or len(before) + len(behind) > MOST_AROUND_BYTES:
            return
        choice = like_usual(fields, before[start:], behind)
        if choice is not None:
            self._before, self._behind, self._choice = before, behind, choice


NOT_YET = b"\n\nno event begins or ends so\n\n\n"


def like_usual(fields: dict[str, Any], before: bytes, behind: bytes) -> int | None:
    """Return the choice of an event that differs from others in text and log probabilities only.

    None where what stands around these, with others between, would say something else.
    """
    try:
        (choice,) = fields["choices"]
        index = choice["index"]
        bare = {**choice, "delta": {"content": ""}, "logprobs": None}
        found = orjson.loads(b'%b""%b%b%b' % (before, BETWEEN, NULL, behind))
    except (KeyError, TypeError, ValueError):
        return None
    told = type(choice["delta"].get("content")) is str and "text" not in choice
    usual = told and len(choice["delta"]) == 1 and choice.get("finish_reason") is None
    alike = found == {**fields, "choices": [bare]}
    return index if usual and alike and type(index) is int and index >= 0 else None
