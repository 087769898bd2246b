"""The names of actions, kept twice so that help is quick."""

from typing import get_args

from gatemesh_common.words import RequestedAction
from gatemesh_ctl.actions import ACTIONS, BACKLOG_CHOICES, EITHER_ACTIONS, POOL_ACTIONS


def test_they_are_those_of_the_message() -> None:
    """What the manager takes can be asked for, and nothing else."""
    assert get_args(RequestedAction) == ACTIONS


def test_the_special_ones_are_among_them() -> None:
    """And none is both."""
    assert {*POOL_ACTIONS, *EITHER_ACTIONS} <= set(ACTIONS)
    assert not set(POOL_ACTIONS) & set(EITHER_ACTIONS)
    assert BACKLOG_CHOICES == ("skip", "replay")
