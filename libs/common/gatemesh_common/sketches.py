"""Histograms of figures over many answers, and the baseline that is read off them. Pure."""

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate

from gatemesh_common.samples import SHARES, BaselineEntry, Sketch
from gatemesh_common.words import Decoding

FARTHEST_BIN = 5_000
"""Bins beyond are counted in the last one, so that no figure can make a histogram endless."""
NEGLIGIBLE = 0.01
"""Weight below which a bin is dropped."""


class Histogram:
    """Weights by bins of one width; merging adds them, scaling lets old ones fade."""

    __slots__ = ("bins", "count", "width")

    def __init__(self, width: float, bins: Mapping[int, float] | None = None) -> None:
        self.width = width
        self.bins: dict[int, float] = {}
        self.count = 0.0
        """Answers in it; a fraction once old ones have faded."""
        for place, weight in (bins or {}).items():
            self._put(place, weight)

    def add(self, value: float) -> None:
        """Count one answer."""
        self._put(place_of(value, self.width), 1.0)

    def merge(self, other: "Histogram", factor: float = 1.0) -> None:
        """Add another one, `factor` times; one of another width is sorted into these bins."""
        if other.width == self.width:
            for place, weight in other.bins.items():
                self._put(place, weight * factor)
            return
        for place, weight in other.bins.items():
            self._put(place_of((place + 0.5) * other.width, self.width), weight * factor)

    def scaled(self, factor: float) -> "Histogram":
        """Return a copy with all weights multiplied; what becomes negligible is dropped."""
        faded = {place: weight * factor for place, weight in self.bins.items()}
        return Histogram(
            self.width, {place: weight for place, weight in faded.items() if weight >= NEGLIGIBLE}
        )

    def quantiles(self, shares: Iterable[float]) -> list[float]:
        """Return the values below which these shares of the answers lie, within the bins."""
        places = sorted(self.bins)
        sums = list(accumulate(self.bins[place] for place in places))
        return [self._value_at(share * self.count, places, sums) for share in shares]

    def mad(self, median: float) -> float:
        """Return the median distance from the median."""
        away = Histogram(self.width)
        for place, weight in self.bins.items():
            distance = abs((place + 0.5) * self.width - median)
            away._put(place_of(distance, self.width), weight)
        return away.quantiles([0.5])[0]

    def _put(self, place: int, weight: float) -> None:
        if weight <= 0.0:
            return
        place = max(-FARTHEST_BIN, min(place, FARTHEST_BIN))
        self.bins[place] = self.bins.get(place, 0.0) + weight
        self.count += weight

    def _value_at(self, weight: float, places: list[int], sums: list[float]) -> float:
        before = 0.0
        for place, upto in zip(places, sums, strict=True):
            if upto >= weight:
                return (place + (weight - before) / (upto - before)) * self.width
            before = upto
        return (places[-1] + 1) * self.width if places else 0.0


def place_of(value: float, width: float) -> int:
    """Return the bin of a value; a whole multiple of the width begins one, whatever its binary."""
    return math.floor(value / width + 1e-9)


def histogram_of(sketch: Sketch) -> Histogram:
    """Return the histogram that travelled."""
    return Histogram(sketch.width, {place: float(count) for place, count in sketch.bins.items()})


def entry_of(
    metric: str, decoding: Decoding, script: str, histogram: Histogram
) -> BaselineEntry | None:
    """Return what is normal by a histogram; None for an empty one."""
    if histogram.count <= 0.0:
        return None
    median, *values = histogram.quantiles((0.5, *SHARES))
    return BaselineEntry(
        metric=metric,
        decoding=decoding,
        script=script,
        count=int(histogram.count),
        median=round(median, 4),
        mad=round(histogram.mad(median), 4),
        quantiles=tuple(round(value, 4) for value in values),
    )
