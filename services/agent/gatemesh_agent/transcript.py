"""What one choice said, kept within a limit: for samples and for the engine's cheap signs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gatemesh_agent.reading import CallParts, Reading

MOST_CHARS = 2**17
MOST_TOKENS = 2**15


@dataclass(slots=True)
class Transcript:
    """Text, tokens and figures of one choice."""

    pieces: list[str] = field(default_factory=list)
    token_ids: list[int | None] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    calls: Sequence[Mapping[str, Any]] = ()
    chars: int = 0
    steps: int = 0
    events: int = 0
    """Readings that brought text or steps."""
    other_output: bool = False
    suspicion: float = 0.0
    """How far the text came on its way to a loop; beyond 1 it was one."""
    finish_reason: str | None = None
    """None while it goes on, and when it was cut short."""

    def take(self, reading: Reading) -> None:
        """Take in what one event or answer holds of the choice."""
        text, steps = reading.text, reading.steps
        if reading.other_output or reading.calls:
            self.other_output = True
        if text:
            self.chars += len(text)
            if self.chars <= MOST_CHARS:
                self.pieces.append(text)
        if text or steps:
            self.events += 1
        self.steps += len(steps)
        if self.steps <= MOST_TOKENS:
            for step in steps:
                self.token_ids.append(step.token_id)
                self.logprobs.append(step.chosen_logprob)

    def end(self, finish_reason: str, calls: CallParts) -> None:
        """Take in how it ended, once."""
        if self.finish_reason is None:
            self.finish_reason = finish_reason
            self.calls = calls.calls()

    @property
    def is_whole(self) -> bool:
        """True when it ended by itself and all of it is here."""
        return (
            self.finish_reason is not None
            and self.chars <= MOST_CHARS
            and self.steps <= MOST_TOKENS
        )

    @property
    def text(self) -> str:
        """The text, as far as it was kept."""
        return "".join(self.pieces)

    def range_nats(self) -> tuple[float, float] | None:
        """Return least and greatest log probability of the tokens; None when none is known."""
        known = [each for each in self.logprobs if each is not None]
        return (min(known), max(known)) if known else None

    def known_ids(self) -> tuple[int, ...] | None:
        """Return the token ids; None unless all are known."""
        ids = [each for each in self.token_ids if each is not None]
        return tuple(ids) if ids and len(ids) == self.steps else None
