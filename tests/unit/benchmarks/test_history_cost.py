"""Ratios of figures that were taken side by side."""

import pytest
from benchmarks.history_cost import WARM_UP, Bench, cost_of, middle_ratio


def bench(stored: int, taken_s: list[float], bare_s: list[float]) -> Bench:
    """Return a size whose batches took so long, after the warm-up."""
    made = object.__new__(Bench)
    made.stored = stored
    made.taken_s = [99.0] * WARM_UP + taken_s
    made.bare_s = [99.0] * WARM_UP + bare_s
    return made


def test_a_busy_moment_falls_on_all_sizes() -> None:
    """Pairs are compared, not sums; the first batches do not count."""
    small = bench(10, [0.2, 2.0, 0.2], [0.1, 1.0, 0.1])
    large = bench(100, [0.3, 3.0, 0.3], [0.1, 1.0, 0.1])
    assert cost_of(small, small).against_smallest == 1
    found = cost_of(large, small)
    assert found.stored == 100
    assert (found.against_smallest, found.against_bare) == pytest.approx((1.5, 3.0))
    assert found.us == pytest.approx(1_500)


def test_rounds_must_match() -> None:
    """Figures of different rounds are not compared."""
    with pytest.raises(ValueError, match="shorter"):
        middle_ratio([1.0, 2.0], [1.0])
