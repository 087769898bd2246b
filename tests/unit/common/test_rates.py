"""A rate holds, whenever it is asked."""

from gatemesh_common.rates import Bucket


def test_so_many_pass_in_a_second() -> None:
    """And as many at once, no more."""
    bucket = Bucket(2.0)
    assert [bucket.take(now_s) for now_s in (5.0, 5.0, 5.0, 5.4, 5.6)] == [
        *(True, True, False, False, True),
    ]


def test_what_is_saved_up_is_bounded() -> None:
    """However long nobody asked."""
    bucket = Bucket(0.5, saved=3.0)
    assert [bucket.take(900.0) for _ in range(4)] == [True, True, True, False]
    assert sum(bucket.take(9000.0) for _ in range(9)) == 3


def test_no_rate_lets_nothing_pass() -> None:
    """Zero is zero, whatever is saved."""
    assert not Bucket(0.0, saved=5.0).take(5.0)
