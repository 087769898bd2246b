"""One guarded stream: every event is judged and forwarded at once, without what was added. Pure."""

import re
from collections.abc import Iterator
from typing import Protocol

from gatemesh_agent.reading import Part
from gatemesh_agent.requests import Route
from gatemesh_agent.sse import EventSplitter, json_start
from gatemesh_agent.strippers import PLAIN, Stripper
from gatemesh_agent.stripping import LogprobsCut, as_object, exists_for_logprobs_only, loads
from gatemesh_agent.usual_events import UsualEvents


class Judge(Protocol):
    """Judges the choices of one answer as they come in."""

    def take_event(self, fields: dict[str, object], raw: bytes | None = None) -> None:
        """Judge one streamed event, `raw` as it came."""

    def take_part(self, part: Part, raw: bytes) -> None:
        """Judge the same where it was read already: it says something of one choice."""

    def give_up(self, why: str) -> None:
        """Judge no further; what is not decided is skipped for this reason."""


class GuardedStream:
    """Turns the engine's bytes into the client's, and shows each event to the judge.

    What comes out depends only on the bytes that went in, never on how they were cut into pieces.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        added: bool,
        drops_bare: bool,
        limit_bytes: int,
        stripper: Stripper = PLAIN,
        usual: UsualEvents | None = None,
    ) -> None:
        self._judge = judge
        self._added = added
        self._usual = usual if added else None
        """None where no event is like the one before, or nothing is taken out of it."""
        self._stripper = stripper
        self._drops_bare = drops_bare
        self._limit_bytes = limit_bytes
        self._splitter = EventSplitter()
        self._cut: LogprobsCut | None = None
        self._long: LongEvent | None = None

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets for these bytes of the engine."""
        if self._cut is not None or self._long is not None:
            return b"".join(self.pieces(data))
        # Without a generator: half of the price of cutting a usual event off.
        events = self._splitter.feed(data)
        forwarded = [self._event(event) for event in events]
        if len(self._splitter.rest) > self._limit_bytes:
            forwarded.append(self._overflow())
        return forwarded[0] if len(forwarded) == 1 else b"".join(forwarded)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the same event by event, each as soon as it is judged."""
        if self._cut is not None:
            yield self._cut.feed(data)
            return
        if self._long is not None:
            yield self._feed_long(self._long, data)
            return
        for event in self._splitter.feed(data):
            yield self._event(event)
        if len(self._splitter.rest) > self._limit_bytes:
            yield self._overflow()

    def end(self) -> bytes:
        """Return what is left when the engine's stream has ended."""
        if self._cut is not None:
            return self._cut.end()
        rest = self._splitter.take_rest() if self._long is None else self._long.take()
        return self._event(rest) if rest else b""

    def _event(self, event: bytes) -> bytes:
        found = None if self._usual is None else self._usual.read(event)
        if found is None:
            return self._any_event(event)
        rest, part = found
        self._judge.take_part(part, event)
        return rest

    def _any_event(self, event: bytes) -> bytes:
        start = json_start(event)
        if start < 0:
            return event
        if not self._added:
            self._judge_plain(event, start)
            return event
        try:
            parted = self._stripper.part(event, start)
        except (ValueError, RecursionError):
            self._judge.give_up("unreadable")
            return cut_whole(event, self._stripper)
        self._judge.take_event(parted.fields, event)
        if self._usual is not None and parted.found:
            self._usual.learn(event, start, parted.fields)
        if parted.found and self._drops_bare and exists_for_logprobs_only(parted.fields):
            return b""
        return parted.rest

    def _judge_plain(self, event: bytes, start: int) -> None:
        try:
            fields = parse_plain(event, start)
        except (ValueError, RecursionError):
            self._judge.give_up("unreadable")
        else:
            self._judge.take_event(fields, event)

    def _overflow(self) -> bytes:
        """An event is too long to hold: keep what is left of it, or forward all unjudged."""
        if self._added and self._stripper.repeats:
            self._long = LongEvent(self._stripper.open_cut())
            return self._feed_long(self._long, self._splitter.take_rest())
        return self._forward_all(self._splitter.take_rest())

    def _feed_long(self, long: "LongEvent", data: bytes) -> bytes:
        following = long.feed(data)
        if len(long.kept) > self._limit_bytes:
            self._judge.give_up("too_large")
            self._long, self._cut = None, long.cut
            return long.kept + long.cut.feed(following or b"")
        if following is None:
            return b""
        self._long = None
        return self._event(long.take()) + self.feed(following)

    def _forward_all(self, data: bytes) -> bytes:
        """Forward this and all that follows unjudged."""
        self._judge.give_up("too_large")
        self._cut = self._stripper.open_cut() if self._added else Untouched()
        return self._cut.feed(data)


class LongEvent:
    """What is left of an event that is too long to be held with its log probabilities."""

    def __init__(self, cut: LogprobsCut) -> None:
        self.cut = cut
        self._last = b""
        self.kept = b""

    def feed(self, data: bytes) -> bytes | None:
        """Take a piece; return what follows the event once it is complete."""
        # JSON holds no bare line feeds, so an empty line ends the event wherever it stands.
        seam = len(self._last)
        found = (self._last + data).find(EVENT_END)
        self._last = data[-1:] or self._last
        if found < 0:
            self.kept += self.cut.feed(data)
            return None
        end = found + len(EVENT_END) - seam
        self.kept += self.cut.feed(data[:end]) + self.cut.end()
        return data[end:]

    def take(self) -> bytes:
        """Return what is kept, and what the cut held back, and forget it."""
        kept, self.kept = self.kept + self.cut.end(), b""
        return kept


EVENT_END = b"\n\n"


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


def announces_only(route: Route, data: bytes) -> bool:
    """Return True while a stream has only said that there will be an answer.

    `/v1/responses` says so twice before the engine has done anything; then it may still break.
    """
    if route is not Route.RESPONSES:
        return False
    names = EVENT_NAME.findall(data)
    if not names and b"\n\n" in data:
        return False
    return all(name in ANNOUNCING for name in names) and len(data) < LONGEST_ANNOUNCEMENT_BYTES


EVENT_NAME = re.compile(rb"^event: (\S+)\n", re.MULTILINE)
ANNOUNCING = (b"response.created", b"response.in_progress", b"response.queued")
LONGEST_ANNOUNCEMENT_BYTES = 2**20


def cut_whole(data: bytes, stripper: Stripper = PLAIN) -> bytes:
    """Take log probabilities out of something that cannot be parsed."""
    cut = stripper.open_cut()
    return cut.feed(data) + cut.end()
