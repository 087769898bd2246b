"""A rate holds, whenever it is asked."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.rates import Bucket


def test_so_many_pass_in_a_second() -> None:
    """And as many at once, no more."""
    bucket = Bucket(2.0, 2.0)
    assert [bucket.take(now_s) for now_s in (5.0, 5.0, 5.0, 5.4, 5.6)] == [
        *(True, True, False, False, True),
    ]


def test_a_minute_s_worth_may_be_used_at_once() -> None:
    """Then there is one every so many seconds."""
    bucket = Bucket.per_min(3)
    for _ in range(3):
        assert bucket.wait_s(0.0) == 0.0
        bucket.use()
    assert bucket.wait_s(0.0) == pytest.approx(20.0)
    assert bucket.wait_s(19.0) == pytest.approx(1.0)
    assert bucket.wait_s(20.0) == 0.0


def test_a_debt_is_waited_for() -> None:
    """An answer's tokens are known when it has ended."""
    bucket = Bucket.per_min(60)
    assert bucket.wait_s(0.0) == 0.0
    bucket.use(160)
    assert bucket.wait_s(0.0) == pytest.approx(101.0)
    assert bucket.wait_s(101.0) == 0.0


def test_what_is_used_before_the_first_look_counts() -> None:
    """A clock does not begin at zero."""
    bucket = Bucket.per_min(60)
    bucket.use(60)
    assert bucket.wait_s(86_400.0) == pytest.approx(1.0)


def test_what_is_saved_up_is_bounded() -> None:
    """A quiet night buys no flood."""
    bucket = Bucket.per_min(30.0, burst=3)
    assert [bucket.take(900.0) for _ in range(4)] == [True, True, True, False]
    assert sum(bucket.take(9000.0) for _ in range(9)) == 3


def test_less_than_one_a_minute_is_one_now_and_then() -> None:
    """Not none for ever, for want of room for a whole one."""
    bucket = Bucket.per_min(0.5)
    assert [bucket.take(now_s) for now_s in (0.0, 119.0, 120.0)] == [True, False, True]


def test_no_rate_lets_nothing_pass() -> None:
    """Zero is zero, whatever the burst."""
    bucket = Bucket.per_min(0.0, burst=5)
    assert not bucket.take(5.0)
    assert bucket.wait_s(5.0) == math.inf


def test_time_that_stands_still_gives_nothing() -> None:
    """Nor does time that goes back."""
    bucket = Bucket.per_min(1)
    assert bucket.take(10.0)
    assert bucket.wait_s(5.0) == pytest.approx(60.0)
    assert bucket.wait_s(10.0) == pytest.approx(60.0)


@given(st.lists(st.floats(0, 50), max_size=60), st.floats(0.5, 600), st.integers(1, 20))
def test_the_rate_is_never_passed(gaps_s: list[float], per_min: float, burst: int) -> None:
    """Whatever comes when: no more than the burst, and what has come in since."""
    bucket = Bucket.per_min(per_min, burst)
    taken = [now_s for now_s in itertools.accumulate(gaps_s) if bucket.take(now_s)]
    for first, last in itertools.combinations_with_replacement(range(len(taken)), 2):
        span_s = taken[last] - taken[first]
        assert last - first + 1 <= burst + span_s * per_min / 60 + 1e-6
