"""The last events of an answer, kept as they came, and the windows around its faults. Pure.

Events are kept as bytes: one object each. What was read from them would be some forty, and letting
go of those late costs as much as a gate.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gatemesh_agent.reading import Part, Reading
from gatemesh_agent.sse import json_start
from gatemesh_agent.stripping import as_object, loads
from gatemesh_agent.transcript import Transcript
from gatemesh_common.messages import Verdict

BEFORE = 64
"""Events kept; while an answer streams, each is one step."""
AFTER = 16
"""Events waited for after a fault."""
MOST_EVENT_BYTES = 2**16
"""Longer ones are not kept: repeats of a whole answer, mostly."""

Event = bytes | Mapping[str, Any]
"""One event of a stream as it came, or the fields of a whole answer."""
Read = Callable[[dict[str, Any]], Iterable[Part]]
Running = Mapping[str, Mapping[str, float]]
"""Running figures by gate."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a choice has come."""

    readings: int
    steps: int
    chars: int

    @classmethod
    def of(cls, transcript: Transcript) -> "Reach":
        """Return how far it has come now."""
        return cls(transcript.events, transcript.steps, transcript.chars)


@dataclass(frozen=True, slots=True)
class Window:
    """What an answer said around the moment at which a gate failed one of its choices."""

    verdict: Verdict
    before: tuple[Event, ...]
    after: tuple[Event, ...]
    at: Reach
    """How far the choice was when it failed, which is the end of `before`."""
    seen: Reach
    """The same when the window was closed."""
    running: Running
    read: Read

    def readings(self) -> list[Reading]:
        """Return what the events said of the choice."""
        return [*self._said(self.before), *self._said(self.after)]

    def first(self) -> Reach:
        """Return how far the choice was before the window."""
        said, at = list(self._said(self.before)), self.at
        return Reach(
            max(0, at.readings - len(said)),
            max(0, at.steps - sum(len(each.steps) for each in said)),
            max(0, at.chars - sum(len(each.text) for each in said)),
        )

    def _said(self, events: Iterable[Event]) -> Iterator[Reading]:
        for event in events:
            for part in self.read(fields_of(event)):
                if part.choice == self.verdict.choice and (part.reading.text or part.reading.steps):
                    yield part.reading


def fields_of(event: Event) -> dict[str, Any]:
    """Return what an event holds; nothing where it was too long to be kept."""
    if not isinstance(event, bytes):
        return dict(event)
    try:
        return as_object(loads(event[max(json_start(event), 0) :])) if event else {}
    except (ValueError, RecursionError):
        return {}


@dataclass(slots=True)
class Held:
    """A window that still grows."""

    verdict: Verdict
    before: tuple[Event, ...]
    at: Reach
    running: Running
    transcript: Transcript
    after: list[Event] = field(default_factory=list)


class Evidence:
    """Follows one answer; all it does for an event is to keep a reference.

    `keep` is to be called with each, before it is judged.
    """

    def __init__(
        self,
        wants: Callable[[Verdict], bool],
        done: Callable[[Window, Transcript], None],
        *,
        until_end: bool = False,
    ) -> None:
        self._wants = wants
        self._done = done
        self._until_end = until_end
        self._ring: deque[Event] = deque(maxlen=BEFORE)
        self._choices: dict[int, tuple[Transcript, Callable[[], Running]]] = {}
        self._held: list[Held] = []
        self._is_over = False
        self.read: Read = lambda _fields: ()
        """Reads the fields of an event."""
        self.keep: Callable[[Event], None] = self._ring.append
        """The ring's own method while no window grows: nearly always."""

    def follow(
        self, choice: int, transcript: Transcript, running: Callable[[], Running] = dict
    ) -> None:
        """Know where a choice stands."""
        self._choices[choice] = (transcript, running)

    def hold(self, verdict: Verdict) -> None:
        """Begin a capture of a failure, if one is wanted; after the answer's end it is whole."""
        if not self._wants(verdict):
            return
        transcript, running = self._choices.get(verdict.choice, (Transcript(), dict))
        at = Reach.of(transcript)
        self._held.append(Held(verdict, tuple(self._ring), at, running(), transcript))
        self.keep = self._follow
        if self._is_over:
            self.end()

    def end(self) -> None:
        """Close every window: the answer has ended."""
        self._is_over = True
        held, self._held = self._held, []
        for each in held:
            self._close(each)

    def _follow(self, event: Event) -> None:
        self._ring.append(event)
        for held in list(self._held):
            if len(held.after) < AFTER:
                held.after.append(event)
            elif not self._until_end:
                # The event of before has been judged by now.
                self._held.remove(held)
                self._close(held)
        if not self._held:
            self.keep = self._ring.append

    def _close(self, held: Held) -> None:
        window = Window(
            verdict=held.verdict,
            before=held.before,
            after=tuple(held.after),
            at=held.at,
            seen=Reach.of(held.transcript),
            running=held.running,
            read=self.read,
        )
        self._done(window, held.transcript)
