"""Where judgements go, and a place where they go no further."""

from collections.abc import Mapping
from typing import Any, Protocol

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_common.messages import CheckLevel, Outcome


class Report(Protocol):
    """Where judgements go."""

    failures: list[Judgement]
    """Those that were failures, so far."""
    judged: set[CheckLevel]
    """Gates that have passed or failed a choice."""
    flagged: list[Judgement]
    """Failures by plugged-in gates, so far."""

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Take in what a gate concluded."""

    def skip(self, level: CheckLevel, why: str) -> None:
        """Take in that a gate could not judge for a reason of the agent's own."""

    def count_tokens(self, count: int) -> None:
        """Take in that the engine made progress."""

    def add_usual(self, usual: Usual) -> None:
        """Take in the figures of a choice that L2 holds nothing against."""


class Collected:
    """Keeps what is concluded about the answer to a probe."""

    def __init__(self) -> None:
        self.failures: list[Judgement] = []
        self.flagged: list[Judgement] = []
        self.judged: set[CheckLevel] = set()

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Keep a failure."""
        note_judged(self.judged, judgement)
        if judgement.outcome is Outcome.FAILED:
            self.failures.append(judgement)

    def skip(self, level: CheckLevel, why: str) -> None:
        """A skip is no failure."""

    def count_tokens(self, count: int) -> None:
        """Probes are not traffic."""

    def add_usual(self, usual: Usual) -> None:
        """Nor are they part of what is normal."""


def note_judged(judged: set[CheckLevel], judgement: Judgement) -> None:
    """Note the gate of a judgement that is none of a skip."""
    if judgement.outcome is not Outcome.SKIPPED:
        judged.add(judgement.gate)
