"""One guarded stream: every event is judged and forwarded at once, without what was added. Pure."""

from typing import Protocol

from gatemesh_agent.sse import EventSplitter, json_start
from gatemesh_agent.stripping import LogprobsCut, as_object, exists_for_logprobs_only, loads, part


class Judge(Protocol):
    """Judges the choices of one answer as they come in."""

    def take_event(self, fields: dict[str, object]) -> None:
        """Judge one streamed event."""

    def give_up(self, why: str) -> None:
        """Judge no further; what is not decided is skipped for this reason."""


class GuardedStream:
    """Turns the engine's bytes into the client's, and shows each event to the judge.

    What comes out depends only on the bytes that went in, never on how they were cut into pieces.
    """

    def __init__(self, judge: Judge, *, added: bool, drops_bare: bool, limit_bytes: int) -> None:
        self._judge = judge
        self._added = added
        self._drops_bare = drops_bare
        self._limit_bytes = limit_bytes
        self._splitter = EventSplitter()
        self._cut: LogprobsCut | None = None

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets for these bytes of the engine."""
        if self._cut is not None:
            return self._cut.feed(data)
        forwarded = b"".join([self._event(event) for event in self._splitter.feed(data)])
        if len(self._splitter.rest) > self._limit_bytes:
            forwarded += self._overflow()
        return forwarded

    def end(self) -> bytes:
        """Return what is left when the engine's stream has ended."""
        if self._cut is not None:
            return self._cut.end()
        rest = self._splitter.take_rest()
        return self._event(rest) if rest else b""

    def _event(self, event: bytes) -> bytes:
        start = json_start(event)
        if start < 0:
            return event
        if not self._added:
            self._judge_plain(event, start)
            return event
        try:
            parted = part(event, start)
        except (ValueError, RecursionError):
            self._judge.give_up("unreadable")
            return cut_whole(event)
        self._judge.take_event(parted.fields)
        if parted.found and self._drops_bare and exists_for_logprobs_only(parted.fields):
            return b""
        return parted.rest

    def _judge_plain(self, event: bytes, start: int) -> None:
        try:
            fields = parse_plain(event, start)
        except (ValueError, RecursionError):
            self._judge.give_up("unreadable")
        else:
            self._judge.take_event(fields)

    def _overflow(self) -> bytes:
        """An event is too long to hold: forward it and all that follows unjudged."""
        self._judge.give_up("too_large")
        self._cut = LogprobsCut() if self._added else Untouched()
        return self._cut.feed(self._splitter.take_rest())


class Untouched(LogprobsCut):
    """Forwards everything as it is."""

    def feed(self, data: bytes) -> bytes:
        """Return the same bytes."""
        return data

    def end(self) -> bytes:
        """Return nothing."""
        return b""


def parse_plain(event: bytes, start: int) -> dict[str, object]:
    """Parse the JSON of an event from which nothing is taken out.

    Raises:
        ValueError: it is no JSON object.
    """
    return as_object(loads(event[start:]))


def cut_whole(data: bytes) -> bytes:
    """Take log probabilities out of something that cannot be parsed."""
    cut = LogprobsCut()
    return cut.feed(data) + cut.end()
