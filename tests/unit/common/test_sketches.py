"""Histograms are merged without a trace of how they were cut, and read with known precision."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.samples import SHARES, Sketch
from gatemesh_common.sketches import FARTHEST_BIN, Histogram, entry_of, histogram_of
from gatemesh_common.words import Decoding

WIDTH = 0.02
Values = st.lists(st.floats(0, 20), min_size=1, max_size=200)


def filled(values: list[float], width: float = WIDTH) -> Histogram:
    """Return the histogram of some values."""
    histogram = Histogram(width)
    for value in values:
        histogram.add(value)
    return histogram


@given(values=Values, cut=st.integers(0, 200))
def test_merging_is_adding(values: list[float], cut: int) -> None:
    """Two agents that saw parts know together what one that saw all knows."""
    whole, left = filled(values), filled(values[:cut])
    left.merge(filled(values[cut:]))
    assert left.bins == whole.bins
    assert left.count == whole.count == len(values)


def test_quantiles_are_right_within_a_bin() -> None:
    """Against the sorted values themselves."""
    rng = random.Random(4)
    values = [rng.gammavariate(3, 0.5) for _ in range(5_000)]
    histogram = filled(values)
    ordered = sorted(values)
    for share, found in zip(SHARES, histogram.quantiles(SHARES), strict=True):
        assert found == pytest.approx(ordered[int(share * len(ordered))], abs=2.5 * WIDTH)
    median = statistics.median(values)
    mad = statistics.median(abs(value - median) for value in values)
    assert histogram.mad(median) == pytest.approx(mad, abs=2 * WIDTH)


def test_another_width_is_sorted_in() -> None:
    """An agent of another release is understood, if coarsely."""
    histogram = filled([1.0] * 9)
    histogram.merge(filled([1.05] * 2, width=0.5))
    assert histogram.count == 11
    assert set(histogram.bins) == {50, 62}


def test_fading_keeps_the_shape() -> None:
    """And drops what no longer weighs anything."""
    histogram = filled([1.0] * 100 + [3.0])
    faded = histogram.scaled(0.5)
    assert faded.count == pytest.approx(50.5)
    assert faded.quantiles([0.5])[0] == pytest.approx(1.0, abs=WIDTH)
    assert 150 not in histogram.scaled(0.005).bins


def test_no_figure_makes_it_endless() -> None:
    """Far values share one bin, and weights that are none are left out."""
    assert set(filled([1e12, 1e13, -1e12]).bins) == {FARTHEST_BIN, -FARTHEST_BIN}
    assert Histogram(WIDTH, {1: -5.0, 2: 0.0}).count == 0


def test_an_entry_says_what_is_normal() -> None:
    """Of as many answers as it counted; of none there is no entry."""
    assert entry_of("m", Decoding.GREEDY, "latin", Histogram(WIDTH)) is None
    sketch = Sketch(
        metric="m", decoding=Decoding.GREEDY, script="latin", width=1.0, bins={0: 1, 1: 2, 2: 1}
    )
    entry = entry_of("m", Decoding.GREEDY, "latin", histogram_of(sketch))
    assert entry is not None
    assert (entry.count, entry.median) == (4, 1.5)
    assert entry.quantiles is not None
    assert list(entry.quantiles) == sorted(entry.quantiles)
    assert len(entry.quantiles) == len(SHARES)
