"""What a gate concludes about one choice of one answer."""

from dataclasses import dataclass
from functools import cache

from gatemesh_common.gates import Judgement as Judgement  # noqa: PLC0414
from gatemesh_common.messages import CheckLevel, Outcome, Reason, Span

GATE_VERSION = "2"
"""Rises when a rule or a threshold changes, so that old verdicts stay comparable."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in the text: what, how much of it, and where (characters, half-open)."""

    reason: Reason
    score: float
    threshold: float
    start: int
    end: int


@cache
def passed(gate: CheckLevel) -> Judgement:
    """Conclude that a gate saw everything it needs and found nothing; the same object each time."""
    return Judgement(gate, Outcome.PASSED, Reason.CLEAN, gate_version=GATE_VERSION)


@cache
def skipped(gate: CheckLevel, reason: Reason) -> Judgement:
    """Conclude that a gate could not judge; the same object each time."""
    return Judgement(gate, Outcome.SKIPPED, reason, gate_version=GATE_VERSION)


def text_failure(finding: Finding) -> Judgement:
    """Conclude from a fault in the text that L1 failed; text is evidence, never proof."""
    return Judgement(
        gate=CheckLevel.L1,
        outcome=Outcome.FAILED,
        reason=finding.reason,
        score=finding.score,
        threshold=finding.threshold,
        span=Span(char_start=finding.start, char_end=max(finding.end, finding.start)),
        gate_version=GATE_VERSION,
    )
