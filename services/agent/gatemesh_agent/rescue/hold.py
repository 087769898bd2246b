"""What is kept from the client for a moment: from the last clean place on, within bounds. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from gatemesh_common.errors import GatemeshError


class Mark(NamedTuple):
    """A place in one instance's part of an answer."""

    chars: int = 0
    steps: int = 0
    tokens: int = 0
    """Steps, or where none are told, events that brought text."""


NOWHERE = Mark()


class State(StrEnum):
    """What becomes of the next event."""

    PASSING = "passing"
    HOLDING = "holding"
    LAPSED = "lapsed"
    """Still doubted, but held for as long as may be: it passes."""
    TRIPPED = "tripped"


class Trigger(StrEnum):
    """What happens to a hold."""

    DOUBTED = "doubted"
    CLEARED = "cleared"
    OVERDUE = "overdue"
    PROVEN = "proven"


S, T = State, Trigger
TRANSITIONS: dict[tuple[State, Trigger], State] = {
    (S.PASSING, T.DOUBTED): S.HOLDING,
    (S.PASSING, T.CLEARED): S.PASSING,
    (S.PASSING, T.PROVEN): S.TRIPPED,
    (S.HOLDING, T.DOUBTED): S.HOLDING,
    (S.HOLDING, T.CLEARED): S.PASSING,
    (S.HOLDING, T.OVERDUE): S.LAPSED,
    (S.HOLDING, T.PROVEN): S.TRIPPED,
    (S.LAPSED, T.DOUBTED): S.LAPSED,
    (S.LAPSED, T.CLEARED): S.PASSING,
    (S.LAPSED, T.PROVEN): S.TRIPPED,
}


class IllegalHoldError(GatemeshError):
    """A hold was asked for what its state does not allow."""


def next_state(state: State, trigger: Trigger) -> State:
    """Return the state after a trigger.

    Raises:
        IllegalHoldError: the table has no such pair.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalHoldError(f"{trigger} while {state}") from None


class Why(StrEnum):
    """Why what was held went on to the client."""

    CLEARED = "cleared"
    TOKENS = "tokens"
    TIME = "time"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class HoldBounds:
    """How much may be held, and for how long."""

    tokens: int = 64
    seconds: float = 3.0


class Flush(NamedTuple):
    """One end of a hold, to be counted."""

    why: Why | None
    """None where what was held is dropped."""
    tokens: int
    seconds: float


def uncounted(_flush: Flush) -> None:
    """Count nothing."""


@dataclass(slots=True)
class Hold:
    """Passes events on at once, but for those that came since the answer is in doubt."""

    bounds: HoldBounds
    counted: Callable[[Flush], object] = uncounted
    state: State = State.PASSING
    clean: Mark = NOWHERE
    """The place behind the last text that passed, or is to pass."""
    _held: list[bytes] = field(default_factory=list)
    _begun_s: float = 0.0
    _tokens: int = 0

    @property
    def held(self) -> bytes:
        """What is held now."""
        return b"".join(self._held)

    def take(
        self, piece: bytes, before: Mark, tokens: int, now_s: float, *, doubted: bool
    ) -> bytes:
        """Return what the client gets now; `before` is the last clean place before the event."""
        if not doubted:
            if self.state is State.PASSING:
                return piece
            self._held.append(piece)
            self._tokens += tokens
            return self._flush(Why.CLEARED, Trigger.CLEARED, now_s)
        was, self.state = self.state, next_state(self.state, Trigger.DOUBTED)
        if self.state is State.LAPSED:
            return piece
        if was is State.PASSING:
            self.clean, self._begun_s, self._tokens = before, now_s, 0
        self._held.append(piece)
        self._tokens += tokens
        if self._tokens > self.bounds.tokens:
            return self._flush(Why.TOKENS, Trigger.OVERDUE, now_s)
        return self.expire(now_s)

    def expire(self, now_s: float) -> bytes:
        """Return what has been held for as long as may be; nothing before."""
        if self.state is not State.HOLDING or now_s - self._begun_s < self.bounds.seconds:
            return b""
        return self._flush(Why.TIME, Trigger.OVERDUE, now_s)

    def wait_s(self, now_s: float) -> float | None:
        """Return after how long something is to go on though nothing comes; None: nothing is."""
        if self.state is not State.HOLDING:
            return None
        return max(0.0, self._begun_s + self.bounds.seconds - now_s)

    def end(self, now_s: float) -> bytes:
        """Return what is held, at the end of a stream that nothing is held against."""
        if self.state is not State.HOLDING:
            return b""
        return self._flush(Why.ENDED, Trigger.CLEARED, now_s)

    def trip(self, now_s: float, clean: Mark) -> Mark:
        """Drop what is held; return the last clean place, `clean` where nothing was held."""
        was, self.state = self.state, next_state(self.state, Trigger.PROVEN)
        if was is not State.HOLDING:
            return clean
        self._held.clear()
        self.counted(Flush(None, self._tokens, now_s - self._begun_s))
        return self.clean

    def _flush(self, why: Why, trigger: Trigger, now_s: float) -> bytes:
        holding = self.state is State.HOLDING
        self.state = next_state(self.state, trigger)
        freed = b"".join(self._held)
        self._held.clear()
        if holding:
            self.counted(Flush(why, self._tokens, now_s - self._begun_s))
        return freed
