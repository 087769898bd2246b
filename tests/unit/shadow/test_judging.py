"""From a sample to its verdicts."""

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.unit.shadow.parts import (
    NOW,
    Engines,
    corroboration_of,
    engine,
    instance,
    limits_with_references,
    replicas_of,
    sample_of,
)
from tests.unit.shadow.test_answering import LONG, OTHER, embedder_of

from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import (
    CheckLevel,
    Message,
    Outcome,
    Reason,
    RoutedInstance,
    Verdict,
)
from gatemesh_shadow.answering import SecondAnswers
from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.judging import SampleJudge
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.limits_store import LimitsStore
from gatemesh_shadow.pair import PairLimits
from gatemesh_shadow.plausibility import ENOUGH
from gatemesh_shadow.scoring import ReplicaScore
from gatemesh_shadow.verifying import Verifying

THREE = (instance("engine-0"), instance("engine-1"), instance("engine-2"))


class Outbox:
    """Takes verdicts; refuses the first ones if told so."""

    def __init__(self, refusals: int = 0) -> None:
        self.sent: list[Verdict] = []
        self.refusals = refusals

    async def publish(self, message: Message) -> None:
        """Take one."""
        if self.refusals:
            self.refusals -= 1
            raise BrokerUnavailableError("away")
        assert isinstance(message, Verdict)
        self.sent.append(message)


def judge_of(
    folder: Path,
    engines: Engines,
    outbox: Outbox,
    *,
    share: float = 0.0,
    nll: float | None = None,
    pool: Sequence[RoutedInstance] = THREE,
) -> SampleJudge:
    """A judge among some instances; with a verifier that always finds the same."""
    replicas = replicas_of(engines, *pool)
    verifying = None
    if nll is not None:
        verifying = Verifying(
            Batcher(lambda texts: [(nll, 64)] * len(texts), 8, 0.0), 1e9, _clock()
        )
    corroboration = corroboration_of(replicas)
    return SampleJudge(
        replicas=replicas,
        scoring=ReplicaScore(replicas, "raw", 512, corroboration),
        corroboration=corroboration,
        answering=SecondAnswers(replicas, None, PairLimits()),
        verifying=verifying,
        store=LimitsStore(folder),
        publish=outbox.publish,
        clock=lambda: NOW,
        rng=random.Random(1),
        second_answer_share=share,
    )


def _clock() -> Any:
    return iter(range(10**6)).__next__


def healthy() -> Engines:
    """Two judges that agree with the sample."""
    return Engines({"engine-0": engine(), "engine-2": engine()})


def counted(name: str, **labels: str) -> float:
    """The present value of a counter."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_pass_travels(tmp_path: Path) -> None:
    """Streaks need both."""
    outbox = Outbox()
    await judge_of(tmp_path, healthy(), outbox).judge(sample_of())
    [verdict] = outbox.sent
    assert (verdict.check_level, verdict.outcome) == (CheckLevel.L4, Outcome.PASSED)
    assert verdict.details["limits"] == "default"


async def test_old_samples_are_dropped(tmp_path: Path) -> None:
    """At the limit they are judged, past it not even asked about."""
    outbox, engines = Outbox(), healthy()
    judge = judge_of(tmp_path, engines, outbox)
    await judge.judge(sample_of(timestamp=NOW - timedelta(seconds=120)))
    await judge.judge(sample_of(timestamp=NOW - timedelta(seconds=121)))
    assert len(outbox.sent) == 1


async def test_publishing_is_tried_again(tmp_path: Path) -> None:
    """The sample stays unacknowledged meanwhile."""
    outbox = Outbox(refusals=2)
    await judge_of(tmp_path, healthy(), outbox).judge(sample_of())
    assert len(outbox.sent) == 1


async def test_suspicion_is_looked_at_twice(tmp_path: Path) -> None:
    """By score and by a second answer; a random sample only now and then."""
    outbox = Outbox()
    judge = judge_of(tmp_path, healthy(), outbox)
    await judge.judge(sample_of(cause="suspicion"))
    assert {one.details["measure"] for one in outbox.sent} == {"replica_score", "tokens"}
    await judge.judge(sample_of())
    assert len(outbox.sent) == 3


async def test_a_lone_judge_is_accused(tmp_path: Path) -> None:
    """With a verdict of its own."""
    outbox = Outbox()
    engines = Engines({"engine-0": engine(shift_nats=3), "engine-2": engine()})
    await judge_of(tmp_path, engines, outbox).judge(sample_of())
    sample, judge = outbox.sent
    assert (sample.instance_id, sample.outcome) == ("engine-1", Outcome.PASSED)
    assert (judge.instance_id, judge.outcome) == ("engine-0", Outcome.FAILED)
    assert judge.reason is Reason.REPLICA_DISAGREES


async def test_the_only_judge_is_accused_by_its_references(tmp_path: Path) -> None:
    """Nothing is said of the other one, by either measure."""
    outbox = Outbox()
    damaged = engine(shift_nats=3, text=OTHER, ids=())
    engines = Engines({"engine-0": damaged})
    judge = judge_of(tmp_path, engines, outbox, pool=THREE[:2])
    judge.answering.embedder = embedder_of(0.1)
    judge.store.replace("default", "m1", limits_with_references())
    await judge.judge(sample_of(cause="suspicion", text=LONG))
    assert {one.instance_id for one in outbox.sent} == {"engine-0"}
    assert len(outbox.sent) == 2
    assert outbox.sent[0].message_id == outbox.sent[1].message_id
    assert outbox.sent[0].outcome is Outcome.FAILED
    assert outbox.sent[0].details["as_judge"] is True
    assert outbox.sent[0].details["by"] == "references"


@pytest.mark.parametrize(("shift_nats", "outcome"), [(0.0, Outcome.PASSED), (3.0, Outcome.FAILED)])
async def test_an_instance_without_replica_is_held_to_its_references(
    tmp_path: Path, shift_nats: float, outcome: Outcome
) -> None:
    """Under its own name; the next sample comes too soon for another round."""
    outbox = Outbox()
    engines = Engines({"engine-1": engine(shift_nats=shift_nats)})
    judge = judge_of(tmp_path, engines, outbox, pool=THREE[1:2])
    judge.store.replace("default", "m1", limits_with_references())
    await judge.judge(sample_of())
    await judge.judge(sample_of(message_id="m2"))
    [verdict] = outbox.sent
    assert (verdict.instance_id, verdict.outcome) == ("engine-1", outcome)
    assert verdict.details["measure"] == "references"
    assert "as_judge" not in verdict.details
    assert verdict.prompt_fingerprint is None


async def test_a_second_answer_of_a_sound_judge_counts(tmp_path: Path) -> None:
    """It says who bore it out."""
    outbox = Outbox()
    engines = Engines({"engine-0": engine(text=OTHER, ids=())})
    judge = judge_of(tmp_path, engines, outbox, pool=THREE[:2], share=1.0)
    judge.answering.embedder = embedder_of(0.1)
    judge.store.replace("default", "m1", limits_with_references())
    await judge.judge(sample_of(text=LONG))
    [failed] = [one for one in outbox.sent if one.outcome is Outcome.FAILED]
    assert failed.instance_id == "engine-1"
    assert failed.details["corroborated_by"] == "references"


async def test_skips_are_counted_and_do_not_travel(tmp_path: Path) -> None:
    """What cannot be replayed, and what nobody can judge."""
    outbox = Outbox()
    labels = {"check_level": "L4", "reason": "not_comparable"}
    before = counted("gatemesh_shadow_skipped_total", **labels)
    await judge_of(tmp_path, healthy(), outbox).judge(sample_of(path="/v1/audio/speech"))
    assert counted("gatemesh_shadow_skipped_total", **labels) == before + 1
    assert outbox.sent == []


async def test_the_verifier_learns_and_judges(tmp_path: Path) -> None:
    """Its passes do not travel, its failures do."""
    outbox = Outbox()
    judge = judge_of(tmp_path, healthy(), outbox, nll=3.0)
    for _ in range(ENOUGH):
        await judge.judge(sample_of())
    assert {one.check_level for one in outbox.sent} == {CheckLevel.L4}
    judge.verifying = Verifying(
        Batcher(lambda texts: [(7.0, 64)] * len(texts), 8, 0.0), 1e9, _clock()
    )
    await judge.judge(sample_of())
    assert outbox.sent[-1].check_level is CheckLevel.L2
    assert outbox.sent[-1].reason is Reason.VERIFIER_SPIKE


@pytest.mark.parametrize(("measured_at", "learnt"), [(None, 0), ("2026-05-01", 1)])
async def test_limits_learn_only_after_fixed_prompts(
    tmp_path: Path, measured_at: str | None, learnt: int
) -> None:
    """And only from answers that passed."""
    judge = judge_of(tmp_path, healthy(), Outbox())
    judge.store.replace("default", "m1", VersionLimits(measured_at=measured_at))
    await judge.judge(sample_of())
    figures = judge.store.limits("default", "m1").learnt[sample_of().decoding].figures
    assert len(figures) == learnt
