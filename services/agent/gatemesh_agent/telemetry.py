"""What this agent saw of each life of each instance, added up over a few seconds. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.pool_baseline import WIDTHS, Kind
from gatemesh_common.delays import bin_of
from gatemesh_common.messages import CheckLevel, GateCounts, Outcome, Sketch, TelemetryWindow
from gatemesh_common.sketches import Histogram

Life = tuple[str, int]
"""Instance and incarnation."""

MOST_SKETCHES = 200
"""In one window; answers in yet another script are left out of the baseline."""


@dataclass(slots=True)
class Tally:
    """How often one gate passed, failed and skipped."""

    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def counts(self) -> GateCounts:
        """Return the counts as they travel."""
        return GateCounts(passed=self.passed, failed=self.failed, skipped=dict(self.skipped))


@dataclass(slots=True)
class Window:
    """Sums of one life of one instance."""

    requests: int = 0
    client_errors: int = 0
    server_errors: int = 0
    tokens: int = 0
    unguarded: int = 0
    first_tokens: Counter[int] = field(default_factory=Counter)
    gates: dict[CheckLevel, Tally] = field(default_factory=dict)
    sketches: dict[Kind, Histogram] = field(default_factory=dict)

    def count_status(self, status: int) -> None:
        """Count an answer by its status; 4xx is the client's own doing."""
        self.requests += 1
        if status >= 500:  # noqa: PLR2004
            self.server_errors += 1
        elif status >= 400:  # noqa: PLR2004
            self.client_errors += 1

    def note_first_token(self, seconds: float) -> None:
        """Count a streamed answer by the time to its first token."""
        self.first_tokens[bin_of(seconds)] += 1

    def count_gate(self, level: CheckLevel, outcome: Outcome, reason: str) -> None:
        """Count what a gate concluded; what it could not judge is never a pass."""
        tally = self.gates.get(level)
        if tally is None:
            tally = self.gates[level] = Tally()
        if outcome is Outcome.PASSED:
            tally.passed += 1
        elif outcome is Outcome.FAILED:
            tally.failed += 1
        else:
            tally.skipped[reason] += 1

    def add_usual(self, usual: Usual) -> None:
        """Sketch the figures of an answer that nothing was held against."""
        for metric, value in usual.values.items():
            kind = (metric.value, usual.decoding, usual.script)
            sketch = self.sketches.get(kind)
            if sketch is None:
                if len(self.sketches) >= MOST_SKETCHES:
                    return
                sketch = self.sketches[kind] = Histogram(WIDTHS[metric])
            sketch.add(value)


def sketch_of(kind: Kind, histogram: Histogram) -> Sketch:
    """Return a sketch as it travels."""
    metric, decoding, script = kind
    bins = {place: int(count) for place, count in histogram.bins.items()}
    return Sketch(metric=metric, decoding=decoding, script=script, width=histogram.width, bins=bins)


class Telemetry:
    """The windows that are being filled; `roll` hands them out and begins new ones."""

    def __init__(self, agent_id: str, pool: str, begun: datetime) -> None:
        self._agent_id = agent_id
        self._pool = pool
        self._begun = begun
        self._windows: dict[Life, Window] = {}

    def of(self, instance_id: str, incarnation: int) -> Window:
        """Return the window that is being filled for one life."""
        life = (instance_id, incarnation)
        window = self._windows.get(life)
        if window is None:
            window = self._windows[life] = Window()
        return window

    def roll(self, now: datetime, in_flight: Mapping[str, int]) -> list[TelemetryWindow]:
        """Return what was seen since the last roll, one message a life, and begin anew."""
        windows, self._windows = self._windows, {}
        begun, self._begun = self._begun, now
        return [
            TelemetryWindow(
                timestamp=now,
                pool=self._pool,
                instance_id=instance_id,
                agent_id=self._agent_id,
                incarnation=incarnation,
                window_start=begun,
                window_end=now,
                requests=window.requests,
                client_errors=window.client_errors,
                server_errors=window.server_errors,
                tokens=window.tokens,
                unguarded=window.unguarded,
                in_flight=max(in_flight.get(instance_id, 0), 0),
                gates={level: tally.counts() for level, tally in window.gates.items()},
                sketches=tuple(sketch_of(*pair) for pair in window.sketches.items()),
                first_tokens=dict(window.first_tokens),
            )
            for (instance_id, incarnation), window in windows.items()
        ]
