"""The closed lists of words."""

from typing import get_args

from gatemesh_common.words import Action, CheckLevel, StepName


def test_levels_and_actions_are_lower_or_upper_case_words() -> None:
    """They stand in routing keys and SQL."""
    assert all(level.value.isalnum() for level in CheckLevel)
    words = (action.value.replace("_", "") for action in Action)
    assert all(word.isalpha() and word.islower() for word in words)


def test_steps_are_distinct() -> None:
    """A history is read by them."""
    steps = get_args(StepName)
    assert len(set(steps)) == len(steps)
