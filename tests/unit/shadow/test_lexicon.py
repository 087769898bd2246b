"""The word lists."""

import pytest

from gatemesh_shadow.lexicon import CLOSED, HAN_NEGATIONS, OPEN, UNITS


@pytest.mark.parametrize("question", ["What is 2 + 2?", "How many?", "法国的首都是哪里？", "3*4"])
def test_closed_questions(question: str) -> None:
    """They have one right answer."""
    assert CLOSED.search(question)
    assert not OPEN.search(question)


@pytest.mark.parametrize(
    "question", ["Write a poem.", "Name a fruit.", "推荐一种水果。", "写一首诗"]
)
def test_open_questions(question: str) -> None:
    """They have many."""
    assert OPEN.search(question)


def test_units_have_one_base_for_each_kind() -> None:
    """Sizes are positive, and every kind has a unit of size 1 but shares."""
    kinds = {kind for kind, _ in UNITS.values()}
    bases = {kind for kind, size in UNITS.values() if size == 1.0}
    assert all(size > 0 for _, size in UNITS.values())
    assert kinds - bases == {"share", "bytes"}


def test_words_that_negate_nothing() -> None:
    """Chinese words that hold a negation."""
    assert not HAN_NEGATIONS.search("非常不过未来")
    assert HAN_NEGATIONS.search("没有")
