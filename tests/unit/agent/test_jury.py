"""Pairs of answers tell a damaged life from traffic that grew harder."""

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gatemesh_agent.gates.drift import DEVIATES, WitnessDrift
from gatemesh_agent.gates.pool_baseline import CLIP, Metric
from gatemesh_agent.jury import (
    FEWEST_PAIRS,
    MOST_SUSPICIONS,
    PAIR_S,
    RULING_S,
    Jury,
    Suspicion,
    suspicion_of,
)
from gatemesh_agent.reporting import Life
from gatemesh_common.messages import Attribution, CheckLevel, Reason, Verdict

LIFE = Life("a", 0, None, numbered=True)
NLL = Metric.NLL_WHOLE
MANY = 60


class World(NamedTuple):
    """What makes answers lean, and how alike two healthy answers to one prompt are."""

    traffic: float
    damage: float
    correlation: float


def pairs(world: World, rng: random.Random) -> Iterator[tuple[float, float]]:
    """Yield scores of accused answers, which are clearly off, and of their witnesses."""
    share, rest = math.sqrt(world.correlation), math.sqrt(1 - world.correlation)
    while True:
        prompt = world.traffic + share * rng.gauss(0, 1)
        accused = prompt + world.damage + rest * rng.gauss(0, 1)
        witness = prompt + rest * rng.gauss(0, 1)
        if accused >= DEVIATES:
            yield min(accused, CLIP), max(-CLIP, min(witness, CLIP))


def hear(jury: Jury, accused: float, witness: float, lean: float, at_s: float = 0.0) -> None:
    """Have a jury hear a pair; all scores in the direction of the lean, which is a fall."""
    noted = WitnessDrift(NLL, -witness)
    told = {"answer_score": -accused, "life_score": -lean}
    jury.hear(Suspicion(LIFE, NLL.value, -1), told, noted, at_s)


def rule(jury: Jury, at_s: float = 0.0) -> Attribution:
    """Return what a jury says."""
    return jury.rule(Suspicion(LIFE, NLL.value, -1), at_s)


def ruling(world: World, rng: random.Random) -> tuple[Attribution, int]:
    """Return how one trial ends, and after how many pairs."""
    jury, lean = Jury(), world.traffic + world.damage
    for count, (accused, witness) in enumerate(pairs(world, rng), start=1):
        hear(jury, accused, witness, lean)
        found = rule(jury)
        if found is not Attribution.UNKNOWN or count == MANY:
            return found, count
    raise AssertionError


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("traffic", [0.5, 1.0, 2.0])
def test_traffic_that_grew_harder_condemns_nobody(traffic: float, correlation: float) -> None:
    """Hardly ever: single answers of witnesses look innocent every other time."""
    rng = random.Random(1)
    ends = [ruling(World(traffic, 0.0, correlation), rng)[0] for _ in range(200)]
    assert ends.count(Attribution.INSTANCE) <= 2


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(
    ("traffic", "damage", "within"), [(0.0, 1.0, 30), (0.0, 2.0, 8), (0.0, 3.0, 4), (1.0, 1.0, 30)]
)
def test_a_damaged_life_is_condemned_soon(
    traffic: float, damage: float, within: int, correlation: float
) -> None:
    """In nearly all trials, the median within so many pairs; also under harder traffic."""
    rng = random.Random(2)
    ends = [ruling(World(traffic, damage, correlation), rng) for _ in range(100)]
    found = sorted(count for end, count in ends if end is Attribution.INSTANCE)
    assert len(found) >= 85
    assert found[len(found) // 2] <= within


def test_few_pairs_prove_nothing() -> None:
    """However far they are apart."""
    jury = Jury()
    for count in range(1, FEWEST_PAIRS + 1):
        assert rule(jury) is Attribution.UNKNOWN
        hear(jury, 3.0, -3.0, 3.0)
        assert (rule(jury) is Attribution.INSTANCE) is (count == FEWEST_PAIRS)


def test_a_ruling_holds_for_a_while() -> None:
    """After it one more pair renews a condemnation; an acquittal begins anew."""
    guilty, innocent = Jury(), Jury()
    for _ in range(9):
        hear(guilty, 3.0, 0.0, 3.0)
        hear(innocent, 3.0, 3.0, 3.0)
    late_s = RULING_S + 1
    for jury, said in ((guilty, Attribution.INSTANCE), (innocent, Attribution.REQUEST)):
        assert rule(jury, RULING_S) is said
        assert rule(jury, late_s) is Attribution.UNKNOWN
    hear(guilty, 3.0, 0.0, 3.0, late_s)
    hear(innocent, 3.0, 3.0, 3.0, late_s)
    assert rule(guilty, late_s) is Attribution.INSTANCE
    assert rule(innocent, late_s) is Attribution.UNKNOWN


def test_old_pairs_are_forgotten() -> None:
    """They are of other traffic."""
    jury = Jury()
    hear(jury, 3.0, 0.0, 3.0)
    hear(jury, 3.0, 0.0, 3.0)
    hear(jury, 3.0, 0.0, 3.0, PAIR_S + 1)
    assert rule(jury, PAIR_S + 1) is Attribution.UNKNOWN


def test_a_witness_without_a_score_is_no_witness() -> None:
    """Its answer could not be measured."""
    jury, suspicion = Jury(), Suspicion(LIFE, NLL.value, 1)
    for _ in range(MANY):
        jury.hear(suspicion, {"answer_score": 3.0, "life_score": 3.0}, WitnessDrift(NLL), 0.0)
    assert jury.rule(suspicion, 0.0) is Attribution.UNKNOWN


def test_memory_is_bounded() -> None:
    """The suspicion heard of longest ago goes."""
    jury = Jury()
    for _ in range(FEWEST_PAIRS):
        hear(jury, 3.0, -3.0, 3.0)
    assert rule(jury) is Attribution.INSTANCE
    for number in range(MOST_SUSPICIONS):
        other = Suspicion(Life("a", number + 1, None, numbered=True), NLL.value, -1)
        told = {"answer_score": -3.0, "life_score": -3.0}
        jury.hear(other, told, WitnessDrift(NLL, 0.0), 0.0)
    assert rule(jury) is Attribution.UNKNOWN


def test_only_a_drift_says_something_of_the_whole_life() -> None:
    """Any other failure is seen in the answer itself."""
    verdict = Verdict.model_validate(
        {
            "timestamp": "2026-01-01T00:00:00Z",
            "instance_id": "a",
            "request_id": "r",
            "check_level": CheckLevel.L2,
            "reason": Reason.DRIFT,
            "details": {"metric": "nll_whole", "direction": -1},
        }
    )
    assert suspicion_of(verdict, LIFE) == Suspicion(LIFE, "nll_whole", -1)
    spike = verdict.model_copy(update={"reason": Reason.PERPLEXITY_SPIKE})
    assert suspicion_of(spike, LIFE) is None
