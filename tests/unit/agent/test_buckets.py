"""A minute's worth, refilled evenly."""

import pytest

from gatemesh_agent.buckets import Bucket


def test_a_minute_s_worth_may_be_used_at_once() -> None:
    """Then there is one every so many seconds."""
    bucket = Bucket(3, 0.0)
    for _ in range(3):
        assert bucket.wait_s(0.0) == 0.0
        bucket.use(1)
    assert bucket.wait_s(0.0) == pytest.approx(20.0)
    assert bucket.wait_s(19.0) == pytest.approx(1.0)
    assert bucket.wait_s(20.0) == 0.0


def test_a_debt_is_waited_for() -> None:
    """An answer's tokens are known when it has ended."""
    bucket = Bucket(60, 0.0)
    bucket.use(160)
    assert bucket.wait_s(0.0) == pytest.approx(101.0)
    assert bucket.wait_s(101.0) == 0.0


def test_it_holds_no_more_than_a_minute_s_worth() -> None:
    """A quiet night buys no flood."""
    bucket = Bucket(2, 0.0)
    assert bucket.wait_s(86_400.0) == 0.0
    bucket.use(2)
    assert bucket.wait_s(86_400.0) == pytest.approx(30.0)


def test_time_that_stands_still_gives_nothing() -> None:
    """Nor does time that goes back."""
    bucket = Bucket(1, 10.0)
    bucket.use(1)
    assert bucket.wait_s(5.0) == pytest.approx(60.0)
