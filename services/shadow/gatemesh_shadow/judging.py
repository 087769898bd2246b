"""One sample from the queue to its verdicts."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gatemesh_common.clock import Clock
from gatemesh_common.consuming import retry_passing_faults
from gatemesh_common.gates import Judgement
from gatemesh_common.messages import Message, Outcome, Reason, ShadowSample, Verdict
from gatemesh_shadow.answering import Compared, SecondAnswers
from gatemesh_shadow.asking import Question, Replicas
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
    answering: SecondAnswers
    verifying: Verifying | None
    store: LimitsStore
    publish: Publish
    clock: Clock
    rng: random.Random
    second_answer_share: float

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
        verdicts = self._scored_verdicts(sample, scored, version)
        await self._send(sample, verdicts)
        return scored, verdicts

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
        verdicts = self._compared_verdicts(sample, compared, version)
        await self._send(sample, verdicts)
        return compared, verdicts

    def _scored_verdicts(
        self, sample: ShadowSample, scored: Scored, version: str | None
    ) -> list[Verdict]:
        if not _counts(scored.judgement):
            return []
        judge = scored.judge.instance_id if scored.judge else None
        now = self.clock()
        verdict = verdict_of(sample, scored.judgement, now, model_version=version, judge=judge)
        if scored.accused_judge is None:
            return [verdict]
        log.warning("judge_stands_alone", extra={"instance_id": scored.accused_judge.instance_id})
        failed = verdict.model_copy(
            update={"outcome": Outcome.FAILED, "reason": Reason.REPLICA_DISAGREES}
        )
        return [verdict, verdict_on_judge(failed, scored.accused_judge)]

    def _compared_verdicts(
        self, sample: ShadowSample, compared: Compared, version: str | None
    ) -> list[Verdict]:
        if not _counts(compared.judgement):
            return []
        judge = compared.judge.instance_id if compared.judge else None
        return [
            verdict_of(sample, compared.judgement, self.clock(), model_version=version, judge=judge)
        ]

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
