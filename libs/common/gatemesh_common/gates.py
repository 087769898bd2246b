"""What a gate is: the protocol that our own gates and plugged-in ones keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from gatemesh_common.messages import CheckLevel, Outcome, Reason, Span

ENTRY_POINT_GROUP = "gatemesh.gates"
"""Distributions name their gates here: `name = package.module:open_gate`, a `GateOpener`."""


class TokenStep(NamedTuple):
    """One step of an engine: the token it took and the log probabilities it reported (nats)."""

    text: str
    chosen_logprob: float | None
    """None where the engine wrote null: the figure was not a number."""
    top_logprobs: tuple[float | None, ...] = ()
    """The likeliest tokens; the first entry may be the sampled one, whatever its rank."""
    complete: bool = True
    """False when likely tokens may be missing among them, as where two ids decode alike."""
    token_id: int | None = None
    """The token's id, where the engine told it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One gate's conclusion; a failure names its evidence and where it begins."""

    gate: CheckLevel
    outcome: Outcome
    reason: Reason
    hard: bool = False
    """True when the failure is proof and not only evidence."""
    score: float | None = None
    threshold: float | None = None
    span: Span | None = None
    gate_version: str = "1"
    name: str = ""
    """Name of a plugged-in gate; empty for our own."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Figures and labels that explain it; no text of prompt or answer."""


CUT_BY_LIMIT = "length"
"""Finish reason of an answer that the token limit ended."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one choice of an answer ended."""

    finish_reason: str | None
    """None when the answer was cut off: its end proves nothing."""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    other_output: bool = False
    """True when there was output outside the text: reasoning, a refusal, sound."""


@dataclass(frozen=True, slots=True)
class GateRequest:
    """What a plugged-in gate learns of a request before its answer comes."""

    body: Mapping[str, Any]
    """The client's request as it was sent, parsed."""
    prompt: str
    """All messages joined; of a very long one both ends; empty when only token ids are known."""
    pool: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """This gate's own settings, as the operator wrote them."""


class Gate(Protocol):
    """Judges one choice while it arrives; pure: no clock, no I/O, O(1) for each token.

    However the stream is cut, the judgement is the same. Each method is called in order of
    arrival, text before the steps that it was made of.
    """

    def feed_text(self, delta: str) -> Judgement | None:
        """Take the next piece of visible text; return the failure that it proves, once."""

    def feed_steps(self, steps: Sequence[TokenStep]) -> Judgement | None:
        """Take the next steps; return the failure that they prove, once."""

    def finish(self, ending: Ending) -> Judgement:
        """Conclude; an earlier failure is returned unchanged.

        What could not be judged is skipped with a reason, never passed.
        """


class PluggedGate(Gate, Protocol):
    """A gate from elsewhere, which may also judge the request itself."""

    def judge_request(self) -> Judgement | None:
        """Return the failure that the request itself is, before it is sent; None lets it pass."""


class GateOpener(Protocol):
    """What an entry point of the group names."""

    def __call__(self, request: GateRequest, /) -> PluggedGate | None:
        """Return the gate of one choice; None when it has nothing to say about this request."""
