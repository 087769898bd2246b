"""The first measure: a healthy instance scores the answer's tokens."""

from dataclasses import dataclass, field, replace

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import (
    CheckLevel,
    Decoding,
    Outcome,
    Reason,
    RoutedInstance,
    ShadowSample,
)
from gatemesh_shadow.asking import Question, Replicas
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.metrics import DISPUTED
from gatemesh_shadow.replay import own_is_comparable
from gatemesh_shadow.scores import LEAST_TOKENS, Figures, figures_of, judge_figures
from gatemesh_shadow.sequential import BOUND, Drift, DriftWatch


@dataclass(frozen=True, slots=True)
class Scored:
    """A judgement, the figures behind it, and who judged."""

    judgement: Judgement
    figures: Figures | None = None
    judge: RoutedInstance | None = None
    accused_judge: RoutedInstance | None = None
    """The judge that stands alone against two others, if that is how it came out."""


@dataclass(slots=True)
class ReplicaScore:
    """Scores samples; a failure is borne out by a second judge where there is one."""

    replicas: Replicas
    own_logprobs: str
    most_tokens: int
    watch: DriftWatch = field(default_factory=DriftWatch)

    async def judge(
        self, sample: ShadowSample, question: Question, limits: VersionLimits
    ) -> Scored:
        """Judge one sample.

        Raises:
            NotReplayableError, ReplicaRefusedError: it cannot be put to another instance.
            SampleExpiredError: nobody answered in time.
        """
        first = await self._judged(sample, question, limits, ())
        if first.judge is None or first.judgement.outcome is not Outcome.FAILED:
            return self._with_drift(sample, first, limits)
        second = await self._judged(sample, question, limits, (first.judge.instance_id,))
        if second.judge is None:
            return first
        if second.judgement.outcome is Outcome.PASSED:
            DISPUTED.inc()
            return replace(second, accused_judge=first.judge)
        return _borne_out(first)

    async def _judged(
        self,
        sample: ShadowSample,
        question: Question,
        limits: VersionLimits,
        besides: tuple[str, ...],
    ) -> Scored:
        async def work(judge: RoutedInstance) -> Figures | None:
            return await self._figures(sample, question, judge)

        done = await self.replicas.with_judge(sample, work, besides)
        if done is None:
            return Scored(skipped(Reason.NO_REPLICA))
        judge, figures = done
        if figures is None:
            return Scored(skipped(Reason.TOO_SHORT), None, judge)
        judgement = judge_figures(figures, limits.scores(sample.decoding))
        return Scored(judgement, figures, judge)

    async def _figures(
        self, sample: ShadowSample, question: Question, judge: RoutedInstance
    ) -> Figures | None:
        """Let a judge score the sample; None where there is too little to score."""
        answer = list(sample.token_ids or ())
        if not answer:
            answer = await self.replicas.tokens_of(judge, question, sample.text)
        answer = answer[: self.most_tokens]
        prompt, room = await self.replicas.prompt(judge, question, len(answer))
        answer = answer[: max(room, 0)]
        if len(answer) < LEAST_TOKENS:
            return None
        scores = await self.replicas.scores(judge, question, prompt, answer)
        own = sample.logprobs if sample.token_ids else None
        if own is not None and not own_is_comparable(self.own_logprobs, sample.request):
            own = None
        is_greedy = sample.decoding is Decoding.GREEDY
        kept = own[: len(answer)] if own else None
        return figures_of(scores.chosen, scores.favourite, kept, greedy=is_greedy)

    def _with_drift(self, sample: ShadowSample, scored: Scored, limits: VersionLimits) -> Scored:
        """Fail an answer that is fine by itself when its life has drifted."""
        if scored.figures is None or scored.judge is None or sample.incarnation is None:
            return scored
        others = [one.instance_id for one in self.replicas.fleet.judges(sample)]
        drift = self.watch.add(
            (sample.instance_id, sample.incarnation),
            scored.judge.instance_id,
            [one for one in others if one != scored.judge.instance_id],
            scored.figures.measures(),
            limits.normal(sample.decoding),
        )
        return scored if drift is None else replace(scored, judgement=_drifted(scored, drift))


def skipped(reason: Reason, why: str = "") -> Judgement:
    """A judgement that says why there is none."""
    details = {"measure": "replica_score", **({"why": why} if why else {})}
    return Judgement(CheckLevel.L4, Outcome.SKIPPED, reason, details=details)


def _borne_out(scored: Scored) -> Scored:
    details = {**scored.judgement.details, "borne_out": True}
    return replace(scored, judgement=replace(scored.judgement, details=details))


def _drifted(scored: Scored, drift: Drift) -> Judgement:
    figures = {"drifted": drift.measure, "answers": drift.answers}
    return replace(
        scored.judgement,
        outcome=Outcome.FAILED,
        reason=Reason.REPLICA_DISAGREES,
        score=drift.total,
        threshold=BOUND,
        details={**scored.judgement.details, **figures, "broken": "drift"},
    )
