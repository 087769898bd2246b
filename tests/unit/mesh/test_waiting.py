"""Waiting ends at the first yes or at the deadline, on a clock that the test moves."""

from gatemesh_mesh.waiting import wait_until


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def test_it_ends_at_the_first_yes() -> None:
    """Nobody waits longer than needed."""
    time = Time()
    ready = lambda: time.now >= 0.3  # noqa: E731
    assert wait_until(ready, 10, 0.1, lambda: time.now, time.pause)
    assert time.now < 0.5


def test_it_asks_once_more_at_the_deadline() -> None:
    """What becomes ready in the last pause counts."""
    time = Time()
    assert wait_until(lambda: time.now >= 1, 1, 0.7, lambda: time.now, time.pause)
    assert time.now == 1


def test_it_says_no_after_the_deadline() -> None:
    """A caller is never stuck."""
    time = Time()
    assert not wait_until(lambda: False, 1, 0.1, lambda: time.now, time.pause)
