"""The replica score of samples, with and without a second judge."""

from typing import Any

import pytest
from tests.unit.shadow.parts import (
    OWN,
    TOKENS,
    Engines,
    corroboration_of,
    engine,
    instance,
    limits_with_references,
    replicas_of,
    sample_of,
)

from gatemesh_common.messages import Decoding, Outcome, Reason
from gatemesh_shadow.asking import Question
from gatemesh_shadow.limits import ENOUGH_FIGURES, VersionLimits
from gatemesh_shadow.scores import Figures
from gatemesh_shadow.scoring import ReplicaScore, Scored

THREE = (instance("engine-0"), instance("engine-1"), instance("engine-2"))


async def judged(
    engines: Engines,
    *,
    mode: str = "raw",
    count: int = 3,
    limits: VersionLimits | None = None,
    **sample: Any,
) -> tuple[Scored, ReplicaScore]:
    """Judge one sample among so many instances."""
    replicas = replicas_of(engines, *THREE[:count])
    score = ReplicaScore(replicas, mode, 512, corroboration_of(replicas))
    found = sample_of(**sample)
    question = Question(found.path, found.request)
    return await score.judge(found, question, limits or VersionLimits()), score


async def test_agreement_passes() -> None:
    """Own and healthy figures are the same; one judge is enough."""
    engines = Engines({"engine-0": engine(), "engine-2": engine()})
    scored, _ = await judged(engines)
    assert scored.judgement.outcome is Outcome.PASSED
    assert scored.figures is not None
    assert scored.figures.distance == 0.0
    assert {name for name, _ in engines.asked} == {"engine-0"}


async def test_a_failure_is_borne_out() -> None:
    """By the other judge."""
    engines = Engines({"engine-0": engine(shift_nats=2), "engine-2": engine(shift_nats=2)})
    scored, _ = await judged(engines)
    assert scored.judgement.outcome is Outcome.FAILED
    assert scored.judgement.details["borne_out"] is True
    assert scored.judgement.details["corroborated_by"] == "judge"
    assert scored.accusation is None


async def test_a_judge_that_stands_alone_is_accused() -> None:
    """The sample passes."""
    engines = Engines({"engine-0": engine(shift_nats=2), "engine-2": engine()})
    scored, _ = await judged(engines)
    assert scored.judgement.outcome is Outcome.PASSED
    assert scored.accusation is not None
    assert scored.accusation.judge.instance_id == "engine-0"
    assert scored.accusation.evidence.outcome is Outcome.FAILED


async def test_the_only_judge_is_believed() -> None:
    """Without references there is nothing else to ask; the verdict says so."""
    scored, _ = await judged(Engines({"engine-0": engine(shift_nats=2)}), count=2)
    assert scored.judgement.outcome is Outcome.FAILED
    assert scored.judgement.details["corroborated"] is False
    assert scored.accusation is None


GARBAGE = (-9.0,) * len(OWN)


async def test_a_lone_judge_that_bears_out_its_references_is_believed() -> None:
    """The accused stays accused."""
    engines = Engines({"engine-0": engine()})
    limits = limits_with_references()
    scored, _ = await judged(engines, count=2, limits=limits, logprobs=GARBAGE)
    assert scored.judgement.outcome is Outcome.FAILED
    assert scored.judgement.details["corroborated"] is True
    assert scored.judgement.details["corroborated_by"] == "references"
    assert scored.accusation is None


async def test_a_lone_judge_that_left_its_references_is_accused() -> None:
    """Of the sample nothing is known then."""
    engines = Engines({"engine-0": engine(shift_nats=2)})
    scored, _ = await judged(engines, count=2, limits=limits_with_references())
    assert scored.judgement.outcome is Outcome.SKIPPED
    assert scored.judgement.reason is Reason.NOT_COMPARABLE
    assert scored.accusation is not None
    assert scored.accusation.judge.instance_id == "engine-0"
    assert scored.accusation.evidence.details["by"] == "references"


@pytest.mark.parametrize(
    ("damaged", "own_nats", "outcome"),
    [
        pytest.param("engine-0", 0.0, Outcome.PASSED, id="first-judge-damaged"),
        pytest.param("engine-2", 0.5, Outcome.FAILED, id="second-shares-the-damage"),
    ],
)
async def test_two_judges_that_do_not_agree(
    damaged: str, own_nats: float, outcome: Outcome
) -> None:
    """The references say which of them to believe."""
    own = tuple(one - own_nats for one in OWN)
    engines = Engines({"engine-0": engine(), "engine-2": engine()})
    engines.say[damaged] = engine(shift_nats=0.5)
    scored, _ = await judged(engines, limits=limits_with_references(), logprobs=own)
    assert scored.judgement.outcome is outcome
    assert scored.accusation is not None
    assert scored.accusation.judge.instance_id == damaged
    assert scored.accusation.evidence.details["measure"] == "references"


async def test_two_sound_judges_at_the_limit_accuse_nobody() -> None:
    """One of them finds the answer just past its limit, the other does not."""
    engines = Engines({"engine-0": engine(shift_nats=0.15), "engine-2": engine()})
    own = tuple(one + 0.1 for one in OWN)
    scored, _ = await judged(engines, limits=limits_with_references(), logprobs=own)
    assert scored.judgement.outcome is Outcome.PASSED
    assert scored.judge is not None
    assert scored.judge.instance_id == "engine-2"
    assert scored.accusation is None


async def test_no_judge() -> None:
    """Skipped, with the reason."""
    replicas = replicas_of(Engines(), instance("engine-1"))
    score = ReplicaScore(replicas, "raw", 512, corroboration_of(replicas))
    sample = sample_of()
    scored = await score.judge(sample, Question(sample.path, sample.request), VersionLimits())
    assert (scored.judgement.outcome, scored.judgement.reason) == (
        Outcome.SKIPPED,
        Reason.NO_REPLICA,
    )


async def test_text_without_ids_is_tokenized() -> None:
    """Then own figures cannot be compared, and what is left is regret and likelihood."""
    engines = Engines({"engine-0": engine(), "engine-2": engine()})
    scored, _ = await judged(engines, token_ids=None)
    assert scored.figures is not None
    assert scored.figures.distance is None
    assert scored.figures.regret is not None


async def test_processed_figures_of_shaped_sampling_are_left_out() -> None:
    """They are not the model's."""
    engines = Engines({"engine-0": engine(), "engine-2": engine()})
    request = {**sample_of().request, "temperature": 0.7}
    sampled: dict[str, Any] = {"request": request, "decoding": Decoding.SAMPLED}
    scored, _ = await judged(engines, mode="processed", **sampled)
    assert scored.figures is not None
    assert scored.figures.measures().keys() == {"nll"}


async def test_short_answers_are_skipped() -> None:
    """Two tokens say nothing."""
    engines = Engines({"engine-0": engine(), "engine-2": engine()})
    scored, _ = await judged(engines, token_ids=TOKENS[:2], logprobs=OWN[:2])
    assert scored.judgement.reason is Reason.TOO_SHORT


async def test_quiet_damage_fails_in_the_end() -> None:
    """Each answer by itself passes; their sum does not."""
    limits = VersionLimits()
    for _ in range(ENOUGH_FIGURES):
        limits.learn(Decoding.GREEDY, Figures(24, 0.5, 0.0, 0.01, 0.0, 0.1))
    engines = Engines({"engine-0": engine(shift_nats=0.045)})
    replicas = replicas_of(engines, *THREE[:2])
    score = ReplicaScore(replicas, "raw", 512, corroboration_of(replicas))
    sample = sample_of()
    question = Question(sample.path, sample.request)
    outcomes = [(await score.judge(sample, question, limits)).judgement.outcome for _ in range(10)]
    assert outcomes[0] is Outcome.PASSED
    assert outcomes[-1] is Outcome.FAILED
    last = (await score.judge(sample, question, limits)).judgement
    assert (last.details["broken"], last.reason) == ("drift", Reason.REPLICA_DISAGREES)
    assert last.details["corroborated"] is False
    limits.references = limits_with_references().references
    unclear = (await score.judge(sample, question, limits)).judgement
    assert (unclear.outcome, unclear.reason) == (Outcome.SKIPPED, Reason.NOT_COMPARABLE)
    engines.say["engine-0"] = engine()
    sound = (await score.judge(sample, question, limits)).judgement
    assert sound.details["corroborated_by"] == "references"


@pytest.mark.parametrize("incarnation", [None])
async def test_a_nameless_life_adds_up_to_nothing(incarnation: int | None) -> None:
    """Evidence belongs to a life."""
    engines = Engines({"engine-0": engine(), "engine-2": engine()})
    scored, score = await judged(engines, incarnation=incarnation)
    assert scored.judgement.outcome is Outcome.PASSED
    assert not score.watch._lives
