"""The cost of keeping is measured beside that of judging."""

import random
from itertools import count

from benchmarks.capture_cost import measure_share


def test_both_ways_judge_the_same() -> None:
    """Where each look at the clock takes one second, keeping adds nothing."""
    seconds = map(float, count())
    found = measure_share(random.Random(1), lambda: next(seconds), tokens=100, runs=2)
    assert found == {"judging_us": 1e6, "with_keeping_us": 1e6, "share": 0.0}
