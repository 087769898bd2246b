"""Charts trip on what leans, soon, and on healthy lives hardly ever."""

import random
from collections.abc import Iterator

import pytest

from gatemesh_agent.gates.drift import (
    CALM,
    CAP,
    CHARTS,
    COMMON_ANSWERS,
    DEVIATES,
    LIVES,
    RECENT_PROMPTS,
    WATCHED,
    PoolDrift,
    Score,
    WitnessDrift,
)
from gatemesh_agent.gates.pool_baseline import CLIP, Metric, Normal

ONE = Metric.ENTROPY_WHOLE


def of(value: float) -> dict[Metric, Score]:
    """Return the score of one figure."""
    return {ONE: Score(value, 0.0)}


def correlated(rng: random.Random, shift: float = 0.0) -> dict[Metric, Score]:
    """Return scores of one answer: its figures go together."""
    shared = rng.gauss(shift, 0.9)
    return {
        metric: Score(max(-CLIP, min(shared + rng.gauss(0, 0.436), CLIP)), 0.0)
        for metric in WATCHED
    }


def names() -> Iterator[str]:
    """Return prompts that never come again."""
    at = 0
    while True:
        at += 1
        yield f"p{at}"


def answers_until_tripped(shift: float, seed: int, most: int) -> int:
    """Return the number of answers until a life trips."""
    life, rng = PoolDrift().of("a"), random.Random(seed)
    for at in range(1, most + 1):
        life.take(correlated(rng, shift), None)
        if life.tripped:
            return at
    return most


@pytest.mark.parametrize(("shift", "most"), [(3.0, 5), (2.0, 9), (-2.0, 9), (1.0, 30)])
def test_a_lean_is_found_soon(shift: float, most: int) -> None:
    """In the median over many lives; the larger, the sooner."""
    runs = sorted(answers_until_tripped(shift, seed, 200) for seed in range(60))
    assert runs[30] <= most


def test_healthy_lives_hardly_ever_trip() -> None:
    """A small part of the simulation of docs/gates.md: 100,000 answers between false alarms."""
    trips = sum(answers_until_tripped(0.0, seed, 2_000) < 2_000 for seed in range(10))
    assert trips <= 1


def test_at_the_limit_and_past_it() -> None:
    """A chart trips beyond its limit."""
    allowance, limit = CHARTS[1]
    steps = limit / (2.5 - allowance)
    life = PoolDrift().of("a")
    taken = [life.take(of(2.5), None) for _ in range(int(steps) + 2)]
    first = next(at for at, lean in enumerate(taken, 1) if lean)
    assert first == int(steps) + 1
    lean = taken[first - 1]
    assert lean is not None
    assert (lean.metric, lean.direction, lean.answers) == (ONE, 1, first)
    assert lean.level > lean.limit == limit


def test_only_what_leans_with_it_fails() -> None:
    """While tripped; and a life that behaves again is forgiven."""
    life = PoolDrift().of("a")
    for _ in range(40):
        life.take(of(3.0), None)
    assert life.take(of(DEVIATES), None) is not None
    assert life.take(of(DEVIATES - 0.01), None) is None
    assert life.take(of(-2.0), None) is None
    longest = max(limit * (CAP - CALM) / allowance for allowance, limit in CHARTS)
    for _ in range(int(longest) + 2):
        life.take(of(0.0), None)
    assert not life.tripped
    assert life.take(of(3.0), None) is None


def test_a_repeated_prompt_counts_once() -> None:
    """One odd prompt, asked for ever, is no drift."""
    life = PoolDrift().of("a")
    for _ in range(500):
        assert life.take(of(3.0), "same") is None
    assert life.answers == 1
    for at in range(RECENT_PROMPTS):
        life.take(of(0.0), f"other {at}")
    life.take(of(0.0), "same")
    assert life.answers == RECENT_PROMPTS + 2


def test_a_new_life_begins_calm() -> None:
    """A restart is a fresh start."""
    pool = PoolDrift()
    for _ in range(20):
        pool.of(("engine-0", 1)).take(of(3.0), None)
    assert pool.of(("engine-0", 1)).tripped
    assert not pool.of(("engine-0", 2)).tripped


def test_what_all_lives_lean_to_is_the_traffic() -> None:
    """A customer sends harder prompts: nobody is accused."""
    pool, rng, prompts = PoolDrift(), random.Random(5), names()
    for _ in range(COMMON_ANSWERS * 3):
        for name in "abc":
            pool.of(name).take(correlated(rng), next(prompts))
    for _ in range(200):
        for name in "abc":
            pool.of(name).take(correlated(rng, 0.9), next(prompts))
    assert not any(pool.of(name).tripped for name in "abc")


def test_a_bad_life_does_not_hide_behind_healthy_ones() -> None:
    """Nor does it make them look bad."""
    pool, rng, prompts = PoolDrift(), random.Random(6), names()
    for _ in range(40):
        pool.of("good").take(correlated(rng), next(prompts))
        pool.of("bad").take(correlated(rng, 2.0), next(prompts))
    assert pool.of("bad").tripped
    assert not pool.of("good").tripped


def test_a_witness_is_measured_and_not_accused() -> None:
    """What its score means is said by many pairs."""
    witness = WitnessDrift(ONE)
    assert witness.take(of(-2.0), "p") is None
    assert witness.score == -2.0
    assert witness.take({}, "p") is None
    assert witness.score is None
    assert witness.tripped


def test_a_lean_tells_the_answers_score_and_the_lifes() -> None:
    """The mean of few answers is that of those, though the sum began at 0."""
    life = PoolDrift().of("a")
    leans = [life.take(of(2.0), name) for name, _ in zip(names(), range(9), strict=False)]
    last = leans[-1]
    assert last is not None
    assert last.own == 2.0
    assert last.mean == pytest.approx(2.0)


def test_memory_is_bounded() -> None:
    """The life that was silent longest is forgotten."""
    pool = PoolDrift()
    first = pool.of(0)
    for name in range(1, LIVES + 1):
        pool.of(name)
    assert pool.of(0) is not first


def test_a_rough_baseline_has_slack() -> None:
    """Its own error must not look like drift."""
    rough, fine = (Normal(count, 0.5, 0.1, 0.15, 2.0, 0.0) for count in (50, 5_000))
    assert Score.of(rough, 0.8).value == Score.of(fine, 0.8).value
    assert Score.of(rough, 0.8).slack == pytest.approx(10 * Score.of(fine, 0.8).slack)
    life = PoolDrift().of("a")
    assert life.take({}, "p") is None
    assert life.answers == 0
