"""Painted steps."""

import math

import pytest

from gatemesh_engine_sim.canned import paint
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.steps import text_of

TEXTS = ["Hello, world. 42!", "叶绿素负责捕捉光能。", "mixed 文字 🎉\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_visible_text_is_the_text(text: str, library: Library) -> None:
    """Nothing is lost between tokens."""
    assert text_of(paint(text, library.palette)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_chosen_token_is_the_likeliest(text: str, library: Library) -> None:
    """A greedy engine never chooses another: gates may take the contrary for proof."""
    for step in paint(text, library.palette):
        assert step.top[0] == (step.token, step.logprob)
        assert all(one.logprob < step.logprob for one in step.top[1:])


@pytest.mark.parametrize("text", TEXTS)
def test_candidates_are_a_distribution(text: str, library: Library) -> None:
    """Distinct tokens whose mass is at most 1."""
    for step in paint(text, library.palette):
        assert sum(math.exp(one.logprob) for one in step.top) <= 1.001
        assert len({one.token for one in step.top}) == len(step.top) >= 19


def test_same_text_same_figures(library: Library) -> None:
    """In one process and in the next."""
    first, second = (paint("Hello there.", library.palette) for _ in range(2))
    assert [step.top for step in first] == [step.top for step in second]
