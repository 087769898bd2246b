"""Where greedy answers part."""

from gatemesh_shadow.splits import Split, Token, first_split

SECOND = [Token(5, {5: -0.1, 6: -3.0}), Token(7, {7: -0.7, 8: -0.9}), Token(9, {9: 0.0})]


def test_gap_at_the_split() -> None:
    """Between the second instance's token and the first one's."""
    split = first_split([5, 8], SECOND)
    assert split is not None
    assert split.step == 1
    assert round(split.gap_nats, 6) == 0.2


def test_unlisted_token_has_at_least_the_widest_gap() -> None:
    """A lower bound."""
    assert first_split([4], SECOND) == Split(0, 2.9)


def test_one_answer_inside_the_other() -> None:
    """A length limit is no split."""
    assert first_split([5, 7], SECOND) is None
    assert first_split([5, 7, 9, 1], SECOND) is None
