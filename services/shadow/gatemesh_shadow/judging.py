"""One sample from the queue to its verdicts."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gatemesh_common.clock import Clock
from gatemesh_common.consuming import retry_passing_faults
from gatemesh_common.gates import Judgement
from gatemesh_common.messages import (
    Message,
    Outcome,
    Reason,
    RoutedInstance,
    ShadowSample,
    Verdict,
)
from gatemesh_shadow.answering import Compared, SecondAnswers
from gatemesh_shadow.asking import Question, Replicas
from gatemesh_shadow.captures import PairCaptures
from gatemesh_shadow.corroborating import Accusation, Corroboration
from gatemesh_shadow.errors import (
    NotReplayableError,
    ReplicaRefusedError,
    SampleExpiredError,
)
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.limits_store import LimitsStore
from gatemesh_shadow.metrics import DROPPED, LAG_SECONDS, SAMPLES, SKIPPED, VERDICTS
from gatemesh_shadow.replay import replayable
from gatemesh_shadow.scoring import ReplicaScore, Scored
from gatemesh_shadow.verdicts import verdict_of, verdict_on_judge
from gatemesh_shadow.verifying import Verifying

log = logging.getLogger(__name__)

Publish = Callable[[Message], Awaitable[None]]


@dataclass(slots=True)
class SampleJudge:
    """Judges samples by every measure that is switched on, and publishes the verdicts."""

    replicas: Replicas
    scoring: ReplicaScore | None
    corroboration: Corroboration
    answering: SecondAnswers
    verifying: Verifying | None
    store: LimitsStore
    publish: Publish
    clock: Clock
    rng: random.Random
    second_answer_share: float
    captures: PairCaptures | None = None
    """Takes both answers where they differ."""

    async def judge(self, sample: ShadowSample) -> None:
        """Judge one sample; returns when its verdicts are with the broker."""
        SAMPLES.labels(cause=sample.cause).inc()
        if self.replicas.is_expired(sample):
            DROPPED.labels(why="too_old").inc()
            return
        version = self.replicas.fleet.model_version(sample)
        is_bad = await self._judge_by_replicas(sample, version)
        await self._send(sample, await self._verified(sample, version, is_bad=is_bad))

    async def _judge_by_replicas(self, sample: ShadowSample, version: str | None) -> bool:
        """Publish what other instances say; each measure as soon as it is there. True if bad."""
        limits = self.store.limits(sample.pool, version)
        try:
            question = Question(*replayable(sample))
            (scored, first), (compared, second) = await asyncio.gather(
                self._scored(sample, question, limits, version),
                self._compared(sample, question, limits, version),
            )
            self._learn(sample, scored, compared, limits)
            return _any_failed([*first, *second])
        except NotReplayableError as error:
            SKIPPED.labels(check_level="L4", reason=Reason.NOT_COMPARABLE).inc()
            log.debug("sample_not_replayable", extra={"why": error.why})
        except ReplicaRefusedError as error:
            SKIPPED.labels(check_level="L4", reason=Reason.NOT_COMPARABLE).inc()
            log.info("sample_refused", extra={"status": error.status, **_named(sample)})
        except SampleExpiredError:
            DROPPED.labels(why="no_answer").inc()
            log.warning("sample_expired", extra=_named(sample))
        # Unknown is no reason to learn from it.
        return True

    async def _send(self, sample: ShadowSample, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            await retry_passing_faults(partial(self.publish, verdict))
            age_s = (self.clock() - sample.timestamp).total_seconds()
            LAG_SECONDS.observe(max(age_s, 0.0))

    async def _scored(
        self,
        sample: ShadowSample,
        question: Question,
        limits: VersionLimits,
        version: str | None,
    ) -> tuple[Scored | None, list[Verdict]]:
        if self.scoring is None:
            return None, []
        scored = await self.scoring.judge(sample, question, limits)
        verdicts = self._verdicts(
            sample, scored.judgement, scored.judge, scored.accusation, version
        )
        if scored.judgement.reason is Reason.NO_REPLICA:
            verdicts = await self._alone(sample, limits, version)
        await self._send(sample, verdicts)
        return scored, verdicts

    async def _alone(
        self, sample: ShadowSample, limits: VersionLimits, version: str | None
    ) -> list[Verdict]:
        """What the references say of an instance that nobody else can judge."""
        judgement = await self.corroboration.weigh_alone(sample, limits)
        return self._verdicts(sample, judgement, None, None, version) if judgement else []

    async def _compared(
        self,
        sample: ShadowSample,
        question: Question,
        limits: VersionLimits,
        version: str | None,
    ) -> tuple[Compared | None, list[Verdict]]:
        if sample.cause == "random" and self.rng.random() >= self.second_answer_share:
            return None, []
        compared = await self.answering.judge(sample, question, limits)
        accusation = None
        if compared.judge and compared.judgement.outcome is Outcome.FAILED:
            found = await self.corroboration.check(compared.judgement, compared.judge, limits)
            compared = replace(compared, judgement=found.judgement)
            accusation = found.accusation
        verdicts = self._verdicts(sample, compared.judgement, compared.judge, accusation, version)
        await self._send(sample, verdicts)
        await self._capture(sample, compared, verdicts)
        return compared, verdicts

    async def _capture(
        self, sample: ShadowSample, compared: Compared, verdicts: Sequence[Verdict]
    ) -> None:
        """Have both answers kept where the judgement about the first one is a failure."""
        second, judge = compared.second, compared.judge
        if self.captures is None or second is None or judge is None:
            return
        if verdicts and compared.judgement.outcome is Outcome.FAILED:
            await self.captures.take(sample, verdicts[0], second.text, judge.instance_id)

    def _verdicts(
        self,
        sample: ShadowSample,
        judgement: Judgement,
        judge: RoutedInstance | None,
        accusation: Accusation | None,
        version: str | None,
    ) -> list[Verdict]:
        """What travels: the judgement unless it is a skip, and an accusation of the judge."""
        now, found = self.clock(), []
        if _counts(judgement):
            named = judge.instance_id if judge else None
            found.append(verdict_of(sample, judgement, now, model_version=version, judge=named))
        if accusation is not None:
            extra = {"instance_id": accusation.judge.instance_id}
            log.warning("judge_accused", extra=extra)
            _counts(accusation.evidence)
            failed = verdict_of(sample, accusation.evidence, now, model_version=version)
            found.append(verdict_on_judge(failed, accusation.judge))
        return found

    async def _verified(
        self, sample: ShadowSample, version: str | None, *, is_bad: bool
    ) -> list[Verdict]:
        if self.verifying is None:
            return []
        is_known_good = not is_bad and self.replicas.fleet.is_healthy(sample)
        baseline = self.store.verifier(sample.pool, version)
        judgement = await self.verifying.judge(sample, baseline, learn=is_known_good)
        # Passes of L2 travel as counts, as those of the agents do.
        if judgement is None or not _counts(judgement) or judgement.outcome is Outcome.PASSED:
            return []
        return [verdict_of(sample, judgement, self.clock(), model_version=version)]

    def _learn(
        self,
        sample: ShadowSample,
        scored: Scored | None,
        compared: Compared | None,
        limits: VersionLimits,
    ) -> None:
        """Take in figures of answers that are beyond doubt; only once fixed prompts were."""
        if limits.measured_at is None or not self.replicas.fleet.is_healthy(sample):
            return
        if scored and scored.figures and scored.judgement.outcome is Outcome.PASSED:
            limits.learn(sample.decoding, scored.figures)
        if compared and compared.cosine and compared.judgement.outcome is Outcome.PASSED:
            limits.learn_cosine(sample.decoding, compared.cosine)


def _counts(judgement: Judgement) -> bool:
    """Count a judgement; True when it travels: skips are only counted."""
    measure = str(judgement.details.get("measure", ""))
    labels = {"check_level": judgement.gate.value, "measure": measure}
    VERDICTS.labels(**labels, outcome=judgement.outcome.value).inc()
    if judgement.outcome is Outcome.SKIPPED:
        SKIPPED.labels(check_level=judgement.gate.value, reason=judgement.reason.value).inc()
        return False
    return True


def _any_failed(verdicts: Sequence[Verdict]) -> bool:
    return any(verdict.outcome is Outcome.FAILED for verdict in verdicts)


def _named(sample: ShadowSample) -> dict[str, str]:
    return {"instance_id": sample.instance_id, "request_id": sample.request_id}
