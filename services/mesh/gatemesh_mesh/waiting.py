"""Waiting for a condition, with a deadline and never by a fixed sleep alone."""

import time
from collections.abc import Callable

Monotonic = Callable[[], float]
"""Returns seconds on a clock that never goes back."""


def wait_until(
    ready: Callable[[], bool],
    deadline_s: float,
    interval_s: float = 0.1,
    clock: Monotonic = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> bool:
    """Ask until it is so; False when it was not within `deadline_s` seconds."""
    end = clock() + deadline_s
    while not ready():
        left = end - clock()
        if left <= 0:
            return False
        pause(min(interval_s, left))
    return True
