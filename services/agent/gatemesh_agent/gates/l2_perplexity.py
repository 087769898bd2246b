"""L2, perplexity: compares the figures of one choice with what is normal in its pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.drift import WATCHED, Drift, Lean, Score
from gatemesh_agent.gates.entropy import Measure
from gatemesh_agent.gates.figures import (
    LONG_WINDOW,
    SCRIPT_STEPS,
    SHORT_WINDOW,
    SHORTEST_STEPS,
    Figures,
)
from gatemesh_agent.gates.judgement import GATE_VERSION, Judgement, passed, skipped
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, Metric, Normal, PoolBaseline, band_of
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.gates.topics import Topic
from gatemesh_common.gates import Ending
from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason, Span

SPIKES = (Metric.NLL_WHOLE, Metric.ENTROPY_WHOLE, Metric.ENTROPY_16)
"""Judged when the answer is whole; the windows are judged while it comes."""
LEAST_RANKS = 5
"""Candidates from which a step's entropy can be compared; engines may tell fewer than asked."""
COLLAPSES = (Metric.NLL_WHOLE, Metric.NLL_64_LOW, Metric.ENTROPY_WHOLE)
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Usual:
    """Figures of one answer, for the pool's baseline."""

    decoding: Decoding
    script: str
    values: Mapping[Metric, float]


class PerplexityGate:
    """Judges one choice; fed by L3, which measures each step anyway."""

    def __init__(
        self,
        context: RequestContext,
        baseline: PoolBaseline = NO_BASELINE,
        drift: Drift | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._context = context
        self._baseline = baseline
        self._life = drift
        self._fingerprint = fingerprint
        self._decoding = context.decoding
        self._band = band_of(context.temperature)
        self._failure: Judgement | None = None
        self._told = False
        self._concluded: Judgement | None = None
        self._limit16 = self._limit64 = NEVER
        self._comparable = not (context.reshaped or context.hot or context.echo)
        self._random: bool | None = None
        self.figures = Figures()

    def follow(self, step: TokenStep, found: Measure) -> None:
        """Take in one step as L3 measured it."""
        figures = self.figures
        rose = figures.take(step.text, -(step.chosen_logprob or 0.0), found.lower, found.top)
        if found.known < LEAST_RANKS:
            figures.knows_entropy = False
        at = figures.tokens
        if at < SCRIPT_STEPS or self._failure is not None:
            return
        if at == SCRIPT_STEPS:
            self._set_limits()
            rose = True
        spikes = rose and (figures.high16 > self._limit16 or figures.high64 > self._limit64)
        if spikes and not self._wants_random():
            self._failure = self._window_spike()

    def feed_text(self, delta: str) -> None:
        """Text is not judged here."""

    def feed_steps(self, steps: Sequence[TokenStep]) -> Judgement | None:
        """Return the failure that the steps followed so far have proven, once."""
        if self._failure is None or self._told:
            return None
        self._told = True
        return self._failure

    def finish(self, ending: Ending) -> Judgement:
        """Conclude, once: the answer becomes part of its life's drift."""
        if self._concluded is None:
            self._concluded = self._failure or self._conclude(ending)
        return self._concluded

    def _conclude(self, ending: Ending) -> Judgement:
        figures = self.figures
        if not figures.tokens:
            return skipped(CheckLevel.L2, Reason.NO_LOGPROBS)
        if not self._comparable:
            return skipped(CheckLevel.L2, Reason.NOT_COMPARABLE)
        if ending.finish_reason is None:
            return skipped(CheckLevel.L2, Reason.CUT_SHORT)
        if figures.tokens < SHORTEST_STEPS:
            return skipped(CheckLevel.L2, Reason.TOO_SHORT)
        if self._normal(Metric.NLL_WHOLE) is None:
            return skipped(CheckLevel.L2, Reason.WARMING)
        self._set_limits()
        return self._spike() or self._collapse() or self._drift() or passed(CheckLevel.L2)

    def _set_limits(self) -> None:
        if not self._comparable:
            return
        short, long = self._normal(Metric.NLL_16), self._normal(Metric.NLL_64)
        self._limit16 = short.high if short else NEVER
        self._limit64 = long.high if long else NEVER

    def _wants_random(self) -> bool:
        """Return True where the prompt wants what is as surprising as this answer is.

        Asked only of what would fail: looking through a long prompt takes milliseconds.
        """
        if self._random is None:
            self._random = self._context.asks(Topic.ENCODED)
        return self._random

    def _normal(self, metric: Metric) -> Normal | None:
        if not self._baseline.normals:
            # Naming the script takes longer than judging a token.
            return None
        return self._baseline.normal(metric, self._decoding, self.script)

    def _window_spike(self) -> Judgement:
        figures = self.figures
        if figures.high16 > self._limit16:
            return self._failed(
                Reason.PERPLEXITY_SPIKE,
                Metric.NLL_16,
                figures.high16,
                self._limit16,
                end=figures.high16_end,
                window=SHORT_WINDOW,
            )
        return self._failed(
            Reason.PERPLEXITY_SPIKE,
            Metric.NLL_64,
            figures.high64,
            self._limit64,
            end=figures.high64_end,
            window=LONG_WINDOW,
        )

    def _spike(self) -> Judgement | None:
        found = self._spike_found()
        return None if found is None or self._wants_random() else found

    def _spike_found(self) -> Judgement | None:
        figures = self.figures
        if figures.high16 > self._limit16 or figures.high64 > self._limit64:
            return self._window_spike()
        values = figures.values()
        for metric in SPIKES:
            normal = self._normal(metric)
            if normal is not None and values.get(metric, 0.0) > normal.high:
                return self._failed(Reason.PERPLEXITY_SPIKE, metric, values[metric], normal.high)
        return None

    def _collapse(self) -> Judgement | None:
        values = self.figures.values()
        for metric in COLLAPSES:
            normal = self._normal(metric)
            if normal is not None and values.get(metric, NEVER) < normal.low:
                return self._failed(Reason.PERPLEXITY_COLLAPSE, metric, values[metric], normal.low)
        return None

    def _drift(self) -> Judgement | None:
        if self._life is None:
            return None
        values = self.figures.values()
        scores = {
            metric: Score.of(normal, values[metric])
            for metric in WATCHED
            if metric in values and (normal := self._normal(metric)) is not None
        }
        lean = self._life.take(scores, self._fingerprint)
        return None if lean is None else self._leans(lean, values[lean.metric])

    def _leans(self, lean: Lean, value: float) -> Judgement:
        normal = self._normal(lean.metric)
        figures = {
            "metric": lean.metric.value,
            "figure": round(value, 4),
            "median": normal.median if normal else None,
            "mad": normal.mad if normal else None,
            "direction": lean.direction,
            "answers": lean.answers,
            "answer_score": round(lean.own, 3),
            "life_score": round(lean.mean, 3),
        }
        return Judgement(
            CheckLevel.L2,
            Outcome.FAILED,
            Reason.DRIFT,
            score=round(lean.level, 3),
            threshold=lean.limit,
            span=Span(token_start=0, token_end=self.figures.tokens),
            gate_version=GATE_VERSION,
            details=figures,
        )

    def _failed(
        self,
        reason: Reason,
        metric: Metric,
        figure: float,
        limit: float,
        *,
        end: int | None = None,
        window: int | None = None,
    ) -> Judgement:
        normal = self._normal(metric)
        last = self.figures.tokens if end is None else end
        details = {
            "metric": metric.value,
            "figure": round(figure, 4),
            "median": normal.median if normal else None,
            "mad": normal.mad if normal else None,
            "window": window or last,
        }
        return Judgement(
            CheckLevel.L2,
            Outcome.FAILED,
            reason,
            score=round(figure, 4),
            threshold=round(limit, 4),
            span=Span(token_start=max(last - (window or last), 0), token_end=last),
            gate_version=GATE_VERSION,
            details=details,
        )

    @property
    def script(self) -> str:
        """Main script of the answer, with the band of its temperature."""
        return self.figures.script + self._band

    @property
    def usual(self) -> Usual | None:
        """The figures of an answer that nothing was held against; None for any other."""
        concluded = self._concluded
        if concluded is None or concluded.reason not in (Reason.CLEAN, Reason.WARMING):
            return None
        if self._life is not None and self._life.tripped:
            # Its life is off the baseline, so it must not become part of one.
            return None
        return Usual(self._decoding, self.script, self.figures.values())
