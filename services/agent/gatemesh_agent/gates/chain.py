"""The gates of one choice, as the agent runs them."""

from collections.abc import Iterable, Mapping, Sequence

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.drift import Drift
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l1_text import Calls, TextGate
from gatemesh_agent.gates.l2_perplexity import PerplexityGate, Usual
from gatemesh_agent.gates.l3_distribution import DistributionGate, Follower
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_common.gates import Ending, Gate
from gatemesh_common.messages import CheckLevel

NOTHING: tuple[Judgement, ...] = ()
NOTHING_YET = (None, None)
"""What L3 and L2 say of nearly every step."""
GateKey = tuple[CheckLevel, str]
"""Level, and the name of a plugged-in gate; our own have none."""


class GateChain:
    """Runs every gate on one choice; each gate reports at most one failure."""

    def __init__(
        self,
        context: RequestContext,
        vocab_size: int | None = None,
        *,
        baseline: PoolBaseline = NO_BASELINE,
        drift: Drift | None = None,
        fingerprint: str | None = None,
        plugged: Mapping[str, Gate] | None = None,
    ) -> None:
        self._text = TextGate(context)
        self._perplexity = PerplexityGate(context, baseline, drift, fingerprint)
        self._distribution = DistributionGate(context, vocab_size, self._perplexity.follow)
        others = plugged or {}
        self._others: tuple[Gate, ...] = tuple(others.values())
        self._gates: tuple[Gate, ...] = (
            self._text,
            self._perplexity,
            self._distribution,
            *self._others,
        )
        self.keys: tuple[GateKey, ...] = (
            (CheckLevel.L1, ""),
            (CheckLevel.L2, ""),
            (CheckLevel.L3, ""),
            *((CheckLevel.PLUGIN, name) for name in others),
        )
        """The gates that conclude, in the order of `finish`."""

    def observe(self, follower: Follower) -> None:
        """Show somebody else each step, too, as it was measured; to be called before the first."""
        self._distribution.observe(follower)

    def feed_text(self, delta: str) -> tuple[Judgement, ...]:
        """Take the next piece of visible text; return the failures that it proves."""
        found = self._text.feed_text(delta)
        proven = NOTHING if found is None else (found,)
        if not self._others:
            return proven
        return proven + tuple([each for gate in self._others if (each := gate.feed_text(delta))])

    def feed_steps(self, steps: Iterable[TokenStep]) -> tuple[Judgement, ...]:
        """Take the next steps; return the failures that they prove."""
        # A tuple is told at once; whether something else is a sequence takes long to find out.
        taken = steps if isinstance(steps, (tuple, Sequence)) else tuple(steps)
        # L3 measures each step and hands it to L2, which then says what it proved.
        found = self._distribution.feed_steps(taken), self._perplexity.feed_steps(taken)
        if found == NOTHING_YET and not self._others:
            return NOTHING
        others = [gate.feed_steps(taken) for gate in self._others]
        return tuple([each for each in (*found, *others) if each is not None])

    def finish(
        self, finish_reason: str | None, tool_calls: Calls = (), *, other_output: bool = False
    ) -> tuple[Judgement, ...]:
        """Conclude with one judgement per gate; earlier failures are among them, unchanged.

        Without a finish reason the answer was cut off: its end proves nothing.
        """
        ending = Ending(finish_reason, tool_calls, other_output)
        return tuple([gate.finish(ending) for gate in self._gates])

    @property
    def suspicion(self) -> float:
        """How far the text is on its way to a loop; beyond 1 it is one."""
        return self._text.suspicion

    @property
    def running(self) -> dict[str, dict[str, float]]:
        """Figures of each gate as they stand, for whoever looks into a fault."""
        figures = self._perplexity.figures.values().items()
        return {
            "L1": {"suspicion": self._text.suspicion},
            "L2": {str(metric): value for metric, value in figures},
            "L3": {
                "tokens": float(self._distribution.tokens),
                "max_entropy_nats": self._distribution.max_entropy,
            },
        }

    @property
    def usual(self) -> Usual | None:
        """The figures of a whole answer that L2 holds nothing against, for the pool's baseline."""
        return self._perplexity.usual
