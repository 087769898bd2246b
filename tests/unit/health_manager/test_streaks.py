"""Failures in a row: exact in any order, however many."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_health_manager.policy_section import LONGEST_STREAK
from gatemesh_health_manager.streaks import EMPTY, Streak

from .samples import NOW, at

Result = tuple[bool, int, str]
"""Whether it passed, when, and of which prompt."""

RESULTS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 40), st.sampled_from("abcdefghijklmnop")), max_size=60
)
MOSTLY_FAILED = st.lists(
    st.tuples(st.sampled_from([True] + [False] * 19), st.integers(0, 99), st.sampled_from("abcd")),
    max_size=120,
)


def after(results: Sequence[Result]) -> Streak:
    """Return the streak after some results, in their order of arrival."""
    streak = EMPTY
    for passed, second, prompt in results:
        streak = streak.passed(at(second)) if passed else streak.failed(at(second), prompt)
    return streak


def slow_way(results: Sequence[Result]) -> tuple[int, int]:
    """Return length and prompts of the streak, from all results at once."""
    last = max((second for passed, second, _ in results if passed), default=-1)
    failures = [prompt for passed, second, prompt in results if not passed and second > last]
    return min(len(failures), LONGEST_STREAK), min(len(set(failures)), LONGEST_STREAK)


@given(st.one_of(RESULTS, MOSTLY_FAILED))
def test_it_agrees_with_the_slow_way(results: list[Result]) -> None:
    """What is forgotten of a long streak changes no count that a rule may ask for."""
    streak = after(results)
    found = (min(streak.length, LONGEST_STREAK), min(streak.prompts, LONGEST_STREAK))
    assert found == slow_way(results)


@given(RESULTS.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_order_of_arrival_changes_nothing(results: tuple[list[Result], list[Result]]) -> None:
    """Only when it happened counts."""
    assert after(results[0]) == after(results[1])


def test_a_pass_at_the_same_moment_ends_the_streak() -> None:
    """In doubt for the instance, whichever comes first."""
    assert after([(False, 1, "a"), (True, 1, "b")]) == after([(True, 1, "b"), (False, 1, "a")])
    assert after([(False, 1, "a"), (True, 1, "b")]).length == 0


def test_a_late_failure_does_not_revive_a_streak() -> None:
    """What happened before a known pass is over."""
    streak = after([(False, 1, "a"), (False, 2, "b"), (True, 4, "c"), (False, 3, "d")])
    assert streak == Streak(passed_at=at(4))
    assert not streak.is_open_at(at(3))
    assert streak.is_open_at(at(5))


@pytest.mark.parametrize("prompts", [1, 3, 1000])
def test_what_is_kept_is_bounded(prompts: int) -> None:
    """A flood while a brake is on costs no more than a hundred entries."""
    streak = EMPTY
    for number in range(3000):
        streak = streak.failed(NOW + timedelta(seconds=number), f"p{number % prompts}")
    assert streak.length == min(prompts, LONGEST_STREAK) * (LONGEST_STREAK if prompts < 9 else 1)
