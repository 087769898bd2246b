"""The gates of one choice, as the agent runs them."""

from collections.abc import Iterable
from dataclasses import dataclass

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l1_text import Calls, TextGate
from gatemesh_agent.gates.l3_distribution import DistributionGate
from gatemesh_agent.gates.steps import TokenStep


@dataclass(frozen=True, slots=True)
class ChoiceFigures:
    """What the gates counted in one choice."""

    chars: int
    tokens: int
    max_entropy_nats: float
    """Largest lower bound of the entropy of a step."""
    mean_nll_nats: float | None
    """Mean surprisal of the chosen tokens; None without log probabilities."""


class GateChain:
    """Runs L1 and L3 on one choice; each gate reports at most one failure."""

    def __init__(self, context: RequestContext, vocab_size: int | None = None) -> None:
        self._text = TextGate(context)
        self._distribution = DistributionGate(context, vocab_size)

    def feed_text(self, delta: str) -> tuple[Judgement, ...]:
        """Take the next piece of visible text; return the failures that it proves."""
        failure = self._text.feed(delta)
        return () if failure is None else (failure,)

    def feed_steps(self, steps: Iterable[TokenStep]) -> tuple[Judgement, ...]:
        """Take the next steps; return the failures that they prove."""
        failure = self._distribution.feed(steps)
        return () if failure is None else (failure,)

    def finish(
        self, finish_reason: str | None, tool_calls: Calls = (), *, other_output: bool = False
    ) -> tuple[Judgement, ...]:
        """Conclude with one judgement per gate; earlier failures are among them, unchanged.

        Without a finish reason the answer was cut off: its end proves nothing.
        """
        return (
            self._text.finish(finish_reason, tool_calls, other_output=other_output),
            self._distribution.finish(complete=finish_reason is not None),
        )

    @property
    def suspicion(self) -> float:
        """How far the text is on its way to a loop; beyond 1 it is one."""
        return self._text.suspicion

    def figures(self) -> ChoiceFigures:
        """Return what was counted so far."""
        gate = self._distribution
        return ChoiceFigures(
            chars=self._text.chars,
            tokens=gate.tokens,
            max_entropy_nats=gate.max_entropy,
            mean_nll_nats=gate.nll / gate.tokens if gate.tokens else None,
        )
