"""What is learnt from healthy instances."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from gatemesh_common.messages import Decoding, Outcome
from gatemesh_shadow.limits import (
    ENOUGH_FIGURES,
    FLOORS,
    KEPT_FIGURES,
    VersionLimits,
    from_json,
    is_sane,
    limit_of,
    normal_of,
    to_json,
)
from gatemesh_shadow.scores import DEFAULT_LIMITS, Figures, judge_figures
from gatemesh_shadow.sequential import DriftWatch

GREEDY = Decoding.GREEDY
QUIET = Figures(32, 0.5, 0.001, 0.02, 0.001, 0.05)


def learnt(figures: Figures, count: int = ENOUGH_FIGURES) -> VersionLimits:
    """Limits after so many equal answers."""
    limits = VersionLimits()
    for _ in range(count):
        limits.learn(GREEDY, figures)
    return limits


def test_defaults_until_there_is_enough() -> None:
    """And they say so."""
    assert learnt(QUIET, ENOUGH_FIGURES - 1).scores(GREEDY) is DEFAULT_LIMITS[GREEDY]
    assert learnt(QUIET).scores(GREEDY).source == "calibrated"
    assert learnt(QUIET, ENOUGH_FIGURES - 1).normal(GREEDY) == {}
    assert set(learnt(QUIET).normal(GREEDY)) == {
        *("distance", "difference", "regret", "worst_regret")
    }


def test_guessed_ids_are_not_learnt_from() -> None:
    """Their figures lack the worst tokens, so limits made of them would be too tight."""
    assert learnt(replace(QUIET, guessed=True)).scores(GREEDY) is DEFAULT_LIMITS[GREEDY]


def test_calibrated_limits_have_floors_and_never_pass_the_defaults() -> None:
    """Rounding is never a fault, and noise is never an excuse."""
    tight = learnt(QUIET).scores(GREEDY)
    assert tight.distance == FLOORS["distance"]
    noisy = learnt(Figures(32, 0.5, 0.9, 0.9, 0.9, 9.0)).scores(GREEDY)
    assert noisy.distance == DEFAULT_LIMITS[GREEDY].distance


def test_measures_that_were_never_seen_keep_their_default() -> None:
    """Where the instances tell no log probabilities of their own."""
    limits = learnt(Figures(32, 0.5, None, None, 0.0, 0.1)).scores(GREEDY)
    assert limits.distance == DEFAULT_LIMITS[GREEDY].distance
    assert limits.worst_regret == FLOORS["worst_regret"]


def test_limit_of() -> None:
    """Above the worst healthy value, robust against one of them."""
    assert limit_of([0.01] * 20, 0.001) == pytest.approx(0.015)
    assert limit_of([0.01] * 20, 0.5) == 0.5
    assert limit_of([-0.2, 0.1, 0.1, 0.1], 0.01) == pytest.approx(0.3)


def test_normal_of() -> None:
    """A spread of nothing is not taken at its word."""
    assert normal_of([0.02] * 20, "distance").spread == 0.01
    assert normal_of([0.0, 0.1, 0.2], "distance").spread == pytest.approx(0.14826)
    assert normal_of([0.0], "difference").two_sided


def test_learning_ends() -> None:
    """A life that decays slowly must not become the norm."""
    limits = learnt(QUIET, KEPT_FIGURES)
    limits.learn(GREEDY, Figures(32, 9.0, 9.0, 9.0, 9.0, 9.0))
    assert len(limits.learnt[GREEDY].figures) == KEPT_FIGURES
    assert limits.scores(GREEDY).distance == FLOORS["distance"]


def test_cosines() -> None:
    """Healthy pairs may lower the limit, never raise it."""
    limits = VersionLimits()
    assert limits.cosine(GREEDY, 0.55) == (0.55, "default")
    for _ in range(20):
        limits.learn_cosine(GREEDY, 0.5)
    least, source = limits.cosine(GREEDY, 0.55)
    assert (least, source) == (0.4, "calibrated")
    assert limits.cosine(GREEDY, 0.3)[0] == 0.3
    for _ in range(200):
        limits.learn_cosine(GREEDY, 0.0)
    assert len(limits.learnt[GREEDY].cosines) == KEPT_FIGURES


def test_sanity() -> None:
    """Two instances that disagree are not two healthy ones."""
    assert is_sane([QUIET], GREEDY)
    assert is_sane([Figures(32, 0.5)], GREEDY)
    assert not is_sane([Figures(32, 0.5, 0.0, 0.08)] * 3, GREEDY)


def test_they_can_be_written_down() -> None:
    """Through JSON and back."""
    limits = learnt(QUIET)
    limits.learn(Decoding.UNKNOWN, Figures(8, 2.0))
    limits.learn_cosine(Decoding.SAMPLED, 0.7)
    limits.measured_at = "2026-05-01T12:00:00+00:00"
    again = from_json(json.loads(json.dumps(to_json({"default/m1": limits}))))
    assert again["default/m1"] == limits


def recorded() -> dict[Decoding, list[Figures]]:
    """Figures of recorded healthy answers."""
    path = Path(__file__).parents[2] / "data" / "shadow" / "healthy_figures.json"
    data = json.loads(path.read_text())
    return {
        decoding: [Figures(int(tokens), *rest) for tokens, *rest in data[decoding.value]]
        for decoding in (GREEDY, Decoding.SAMPLED)
    }


@pytest.mark.parametrize("decoding", [GREEDY, Decoding.SAMPLED])
@pytest.mark.parametrize("half", [0, 1])
def test_recorded_healthy_answers_raise_no_alarm(decoding: Decoding, half: int) -> None:
    """Limits learnt from one half of them; the other half passes, and never drifts."""
    figures = recorded()[decoding]
    limits, watch, rng = VersionLimits(), DriftWatch(), random.Random(half)
    for one in figures[half::2]:
        limits.learn(decoding, one)
    others = figures[1 - half :: 2]
    assert limits.scores(decoding).source == "calibrated"
    assert all(
        judge_figures(one, limits.scores(decoding)).outcome is Outcome.PASSED for one in others
    )
    normal = limits.normal(decoding)
    for _ in range(10_000):
        measures = rng.choice(others).measures()
        assert watch.add(("engine-1", 1), "judge", (), measures, normal) is None
