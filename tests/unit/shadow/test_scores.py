"""Figures of one answer, and their limits."""

import pytest

from gatemesh_common.messages import Outcome, Reason
from gatemesh_shadow.scores import (
    FULL_TOKENS,
    Figures,
    ScoreLimits,
    figures_of,
    guessed_figures,
    judge_figures,
    widened,
)

LIMITS = ScoreLimits(nll=2.0, difference=0.1, distance=0.2, regret=0.3, worst_regret=1.0)
GOOD = Figures(24, 0.5, 0.0, 0.0, 0.0, 0.0)


def test_figures() -> None:
    """Means per token; regret of greedy answers only."""
    figures = figures_of([-1.0, -3.0], [-0.5, -3.0], [-0.8, -3.4], greedy=True)
    assert figures.tokens == 2
    assert figures.nll == pytest.approx(2.0)
    assert figures.difference == pytest.approx(-0.1)
    assert figures.distance == pytest.approx(0.3)
    assert (figures.regret, figures.worst_regret) == (0.25, 0.5)
    drawn = figures_of([-1.0], [-0.5], None, greedy=False)
    assert drawn.measures() == {"nll": 1.0}


@pytest.mark.parametrize("own", [None, [-1.0], [-1.0, None], [-1.0, float("nan")]])
def test_own_figures_must_be_complete(own: list[float | None] | None) -> None:
    """One that is missing or no number makes them useless."""
    assert figures_of([-1.0, -1.0], [0.0, 0.0], own, greedy=False).distance is None


def test_spelling_does_not_rule() -> None:
    """Ids that nobody told: what the model would have cut elsewhere is left out."""
    spelling = [False] * 18 + [True] * 3
    figures = guessed_figures([-0.1] * 18 + [-9.0] * 3, [-0.1] * 21, spelling, greedy=True)
    assert figures.measures() == {"nll": pytest.approx(0.1), "regret": pytest.approx(0.0)}
    judgement = judge_figures(figures, LIMITS)
    assert judgement.outcome is Outcome.PASSED
    assert judgement.details["ids"] == "guessed"


def test_two_odd_guessed_tokens_do_not_rule() -> None:
    """What is no readable character cannot be compared."""
    figures = guessed_figures([-0.1] * 18 + [-21.0] * 2, [-0.1] * 20, [False] * 20, greedy=True)
    assert figures.regret == pytest.approx(0.0)


def test_damage_shows_in_guessed_ids() -> None:
    """It is in more than two tokens."""
    figures = guessed_figures([-0.5] * 18 + [-4.0] * 6, [-0.5] * 24, [False] * 24, greedy=True)
    judgement = judge_figures(figures, LIMITS)
    assert (judgement.outcome, judgement.details["broken"]) == (Outcome.FAILED, "regret")


def test_guessed_ids_of_a_draw() -> None:
    """Regret is chance."""
    figures = guessed_figures([-1.0] * 8 + [-3.0] * 4, [-0.5] * 12, [False] * 12, greedy=False)
    assert figures.measures() == {"nll": pytest.approx(1.4)}


@pytest.mark.parametrize("spelling", [False, True])
def test_few_guessed_ids_say_nothing(spelling: bool) -> None:  # noqa: FBT001
    """Two odd ones cannot be left out of next to nothing."""
    figures = guessed_figures([-9.0] * 9, [0.0] * 9, [spelling] * 9, greedy=True)
    assert judge_figures(figures, LIMITS).reason is Reason.TOO_SHORT


def test_clamps_do_not_rule() -> None:
    """An engine writes -9999 for what it finds impossible."""
    assert figures_of([-9999.0], [0.0], None, greedy=False).nll == 50.0


@pytest.mark.parametrize(
    ("measure", "value"),
    [("distance", 0.2), ("difference", -0.1), ("worst_regret", 1.0), ("regret", 0.3), ("nll", 2.0)],
)
def test_each_measure_at_its_limit(measure: str, value: float) -> None:
    """At the limit it passes, past it the verdict names it."""
    named = {"tokens": 24, **GOOD.measures()}
    at_limit = Figures(**{**named, measure: value})  # type: ignore[arg-type]
    assert judge_figures(at_limit, LIMITS).outcome is Outcome.PASSED
    beyond = Figures(**{**named, measure: value * 1.01})  # type: ignore[arg-type]
    judgement = judge_figures(beyond, LIMITS)
    assert (judgement.outcome, judgement.reason) == (Outcome.FAILED, Reason.REPLICA_DISAGREES)
    assert judgement.details["broken"] == measure
    assert judgement.score == pytest.approx(value * 1.01)


def test_short_answers_get_wider_limits() -> None:
    """The mean of few tokens is noisier; of next to none it says nothing."""
    assert widened(1.0, FULL_TOKENS) == widened(1.0, 500) == 1.0
    assert widened(1.0, 6) == 2.0
    judgement = judge_figures(Figures(2, 50.0), LIMITS)
    assert (judgement.outcome, judgement.reason) == (Outcome.SKIPPED, Reason.TOO_SHORT)


def test_passes_name_their_tightest_measure() -> None:
    """Distance where own figures are known, else what there is."""
    assert judge_figures(GOOD, LIMITS).score == 0.0
    assert judge_figures(Figures(24, 1.5), LIMITS).score == 1.5
