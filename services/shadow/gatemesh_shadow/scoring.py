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
from gatemesh_shadow.corroborating import (
    BY_REFERENCES,
    Accusation,
    Corroboration,
    with_details,
)
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.metrics import DISPUTED
from gatemesh_shadow.references import Standing
from gatemesh_shadow.replay import own_is_comparable
from gatemesh_shadow.scores import (
    LEAST_TOKENS,
    Figures,
    figures_of,
    guessed_figures,
    judge_figures,
)
from gatemesh_shadow.sequential import BOUND, Drift, DriftWatch
from gatemesh_shadow.spelling import spelt_otherwise


@dataclass(frozen=True, slots=True)
class Scored:
    """A judgement, the figures behind it, and who judged."""

    judgement: Judgement
    figures: Figures | None = None
    judge: RoutedInstance | None = None
    accusation: Accusation | None = None
    """The judge that stands alone against two others or left its references, if one did."""


@dataclass(slots=True)
class ReplicaScore:
    """Scores samples; a failure is borne out by a second judge, or by kept references."""

    replicas: Replicas
    own_logprobs: str
    most_tokens: int
    corroboration: Corroboration
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
            return await self._with_drift(sample, first, limits)
        second = await self._judged(sample, question, limits, (first.judge.instance_id,))
        if second.judge is None:
            return await self._corroborated(first, first.judge, limits)
        if second.judgement.outcome is Outcome.PASSED:
            return await self._split(first, first.judge, second, second.judge, limits)
        return _borne_out(first)

    async def _corroborated(
        self, failed: Scored, judge: RoutedInstance, limits: VersionLimits
    ) -> Scored:
        """A failure that only one judge can tell of."""
        found = await self.corroboration.check(failed.judgement, judge, limits)
        return replace(failed, judgement=found.judgement, accusation=found.accusation)

    async def _split(
        self,
        failed: Scored,
        first: RoutedInstance,
        passed: Scored,
        second: RoutedInstance,
        limits: VersionLimits,
    ) -> Scored:
        """Two judges that do not agree: the references say which of them to believe."""
        DISPUTED.inc()
        weighed = await self.corroboration.rounds.weigh(first, limits)
        if weighed.standing is Standing.DEVIATES:
            return replace(passed, accusation=Accusation(first, weighed.judgement))
        if weighed.standing is not Standing.AGREES:
            return replace(passed, accusation=Accusation(first, _turned(passed.judgement)))
        weighed = await self.corroboration.rounds.weigh(second, limits)
        if weighed.standing is not Standing.DEVIATES:
            # Both judges are well, so the answer is one at the limit.
            return passed
        told = with_details(failed.judgement, BY_REFERENCES)
        return replace(failed, judgement=told, accusation=Accusation(second, weighed.judgement))

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
        is_greedy = sample.decoding is Decoding.GREEDY
        if not sample.token_ids:
            spelling = spelt_otherwise(scores.pieces, scores.favourites)
            return guessed_figures(scores.chosen, scores.favourite, spelling, greedy=is_greedy)
        own = sample.logprobs
        if own is not None and not own_is_comparable(self.own_logprobs, sample.request):
            own = None
        kept = own[: len(answer)] if own else None
        return figures_of(scores.chosen, scores.favourite, kept, greedy=is_greedy)

    async def _with_drift(
        self, sample: ShadowSample, scored: Scored, limits: VersionLimits
    ) -> Scored:
        """Fail an answer that is fine by itself when its life has drifted."""
        if scored.figures is None or scored.judge is None or sample.incarnation is None:
            return scored
        judge = scored.judge
        judges = [one.instance_id for one in self.replicas.fleet.judges(sample)]
        others = [one for one in judges if one != judge.instance_id]
        drift = self.watch.add(
            (sample.instance_id, sample.incarnation),
            judge.instance_id,
            others,
            scored.figures.measures(),
            limits.normal(sample.decoding),
        )
        if drift is None:
            return scored
        failed = replace(scored, judgement=_drifted(scored, drift))
        return failed if others else await self._corroborated(failed, judge, limits)


def _turned(passed: Judgement) -> Judgement:
    """The same evidence turned against the judge that found otherwise."""
    return replace(passed, outcome=Outcome.FAILED, reason=Reason.REPLICA_DISAGREES)


def skipped(reason: Reason, why: str = "") -> Judgement:
    """A judgement that says why there is none."""
    details = {"measure": "replica_score", **({"why": why} if why else {})}
    return Judgement(CheckLevel.L4, Outcome.SKIPPED, reason, details=details)


def _borne_out(scored: Scored) -> Scored:
    told = {"borne_out": True, "corroborated": True, "corroborated_by": "judge"}
    return replace(scored, judgement=with_details(scored.judgement, told))


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
