"""Small signs, added up."""

import random

from gatemesh_shadow.sequential import BOUND, CEILING, DriftWatch, Normal

NORMAL = {"distance": Normal(0.02, 0.01), "difference": Normal(0.0, 0.01, two_sided=True)}
LIFE = ("engine-1", 3)


def answers_until_drift(distance: float, most: int = 100) -> int | None:
    """How many equal answers it takes; None when it never trips."""
    watch = DriftWatch()
    for count in range(1, most + 1):
        if watch.add(LIFE, "a", (), {"distance": distance}, NORMAL):
            return count
    return None


def test_quiet_damage_trips_in_the_end() -> None:
    """Three deviations after 5 answers, two after 11, one never."""
    assert answers_until_drift(0.05) == 5
    assert answers_until_drift(0.04) == 11
    assert answers_until_drift(0.03) is None


def test_one_odd_answer_does_not_trip() -> None:
    """However odd."""
    watch = DriftWatch()
    assert watch.add(LIFE, "a", (), {"distance": 99.0}, NORMAL) is None


def test_both_sides_of_a_difference() -> None:
    """More certain than it should be is as bad."""
    watch = DriftWatch()
    drifts = [watch.add(LIFE, "a", (), {"difference": -0.05}, NORMAL) for _ in range(6)]
    assert drifts[0] is None
    drift = drifts[-1]
    assert drift is not None
    assert (drift.measure, drift.answers) == ("difference", 6)
    assert drift.total > BOUND


def test_a_life_that_is_well_again_clears() -> None:
    """The sum has a ceiling."""
    watch = DriftWatch()
    for _ in range(50):
        drift = watch.add(LIFE, "a", (), {"distance": 1.0}, NORMAL)
    assert drift is not None
    assert drift.total == CEILING
    cleared = [watch.add(LIFE, "a", (), {"distance": 0.02}, NORMAL) for _ in range(6)]
    assert cleared[-1] is None


def test_lives_are_apart() -> None:
    """A restart begins at zero."""
    watch = DriftWatch()
    for _ in range(4):
        watch.add(LIFE, "a", (), {"distance": 0.05}, NORMAL)
    assert watch.add(("engine-1", 4), "a", (), {"distance": 0.05}, NORMAL) is None


def test_a_damaged_judge_alone_accuses_nobody() -> None:
    """Another judge must have seen signs, too, where there is one."""
    watch = DriftWatch()
    for _ in range(20):
        watch.add(LIFE, "b", ("a",), {"distance": 0.02}, NORMAL)
        assert watch.add(LIFE, "a", ("b",), {"distance": 0.05}, NORMAL) is None
    for _ in range(4):
        watch.add(LIFE, "b", ("a",), {"distance": 0.05}, NORMAL)
    assert watch.add(LIFE, "a", ("b",), {"distance": 0.05}, NORMAL) is not None


def test_rate_of_false_alarms() -> None:
    """None in 50,000 answers with heavier tails than healthy ones have (Laplace)."""
    rng, watch = random.Random(1), DriftWatch()
    for _ in range(50_000):
        noise = rng.expovariate(1.0) - rng.expovariate(1.0)
        figures = {"distance": 0.02 + 0.01 * noise / 1.028}
        assert watch.add(LIFE, "a", (), figures, NORMAL) is None
