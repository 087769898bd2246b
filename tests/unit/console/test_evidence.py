"""Captures become coloured tokens; whatever is broken in them is left out, never guessed."""

import math

import pytest

from gatemesh_console.evidence import HEATS, MOST_TOKENS, Token, show

from .conftest import CAPTURE, TEXTS


def test_a_capture_is_joined_with_its_text() -> None:
    """By its id; figures and words are in the same order."""
    [shown] = show([CAPTURE], [TEXTS])
    first, second = shown.tokens
    assert (first.n, first.text, first.entropy, first.is_fault) == (4, "good", 2.5, False)
    assert first.probability == pytest.approx(math.exp(-0.5))
    assert (second.text, second.entropy, second.probability) == (TEXTS["tokens"][1], None, None)
    assert second.is_fault
    assert shown.texts["second_answer"] == "fine"


def test_a_capture_without_text_still_has_its_figures() -> None:
    """Figures are readable where texts are not."""
    [shown] = show([CAPTURE], [])
    assert [token.text for token in shown.tokens] == [None, None]
    assert shown.texts == {}


@pytest.mark.parametrize(
    ("entropy", "heat"),
    [(0.0, "0"), (0.99, "0"), (1.0, "1"), (9.0, "9"), (50.0, "9"), (-1.0, "0"), (None, "unknown")],
)
def test_each_nat_has_its_colour(entropy: float | None, heat: str) -> None:
    """Unknown is a colour of its own."""
    assert Token(0, None, entropy, None, is_fault=False).heat == heat
    assert heat == "unknown" or int(heat) < HEATS


@pytest.mark.parametrize("steps", [None, "x", {}, [], ["x", 3, None]])
def test_steps_that_are_none_are_left_out(steps: object) -> None:
    """The page stands whatever the column holds."""
    [shown] = show([{"capture_id": "c", "steps": steps}], [])
    assert shown.tokens == ()


def test_figures_that_are_none_are_unknown() -> None:
    """Neither a text nor infinity is drawn as a number; a page shows so many tokens at most."""
    odd = {"n": "x", "logprob": math.inf, "entropy": True, "fault": "yes"}
    [shown] = show([{"capture_id": "c", "steps": [odd] * (MOST_TOKENS + 1)}], [])
    assert len(shown.tokens) == MOST_TOKENS
    assert shown.tokens[1] == Token(1, None, None, None, is_fault=False)


def test_a_probability_is_never_above_one() -> None:
    """Rounding of an engine may put a log probability above zero."""
    [shown] = show([{"capture_id": "c", "steps": [{"n": 0, "logprob": 1e-3}]}], [])
    assert shown.tokens[0].probability == 1.0
