"""Scores are kept for a while, and drawn from 0 to 100."""

import pytest

from gatemesh_console.scores import KEPT, Scores, height_of, polyline


def look(scores: Scores, **now: float) -> None:
    """Look at some instances."""
    scores.look([{"instance_id": name, "score": score} for name, score in now.items()])


def test_the_latest_scores_are_kept() -> None:
    """Memory is bounded, and order is that of time."""
    scores = Scores()
    for turn in range(KEPT + 5):
        look(scores, a=float(turn))
    assert scores.of("a") == tuple(float(turn) for turn in range(5, KEPT + 5))


def test_an_instance_that_is_gone_is_forgotten() -> None:
    """Names come and go for ever on Kubernetes."""
    scores = Scores()
    look(scores, a=1.0, b=2.0)
    look(scores, b=3.0)
    assert scores.of("a") == ()
    assert scores.of("b") == (2.0, 3.0)


@pytest.mark.parametrize(
    ("score", "height"), [(100.0, 0.0), (0.0, 24.0), (50.0, 12.0), (-5.0, 24.0), (120.0, 0.0)]
)
def test_a_score_has_its_height(score: float, height: float) -> None:
    """Full marks are at the top, and nothing leaves the picture."""
    assert height_of(score) == height


def test_the_newest_score_is_at_the_right_edge() -> None:
    """Whether there are few or many."""
    assert polyline([100.0]) == "96.0,0.0"
    assert polyline([0.0, 100.0]).endswith("96.0,0.0")
    assert polyline([50.0] * KEPT).startswith("0.0,12.0")
