"""Delays counted in bins that grow with them: few numbers, and the same precision everywhere."""

import math
from collections.abc import Mapping
from itertools import accumulate

BINS_PER_DOUBLING = 4
"""A bin is 19 % wide."""
LAST_BIN = 100
"""From about nine hours on."""


def bin_of(seconds: float) -> int:
    """Return the bin of a delay: bin k begins at 2^(k/4) ms, the first one at nothing."""
    milliseconds = max(1.0, seconds * 1000)
    return min(LAST_BIN, math.floor(math.log2(milliseconds) * BINS_PER_DOUBLING))


def end_of(place: int) -> float:
    """Return where a bin ends, in seconds."""
    return float(2 ** ((place + 1) / BINS_PER_DOUBLING)) / 1000


def quantile(bins: Mapping[int, int], share: float) -> float | None:
    """Return a delay in seconds that so many have at most; None where nothing was counted."""
    places = sorted(bins)
    sums = list(accumulate(bins[place] for place in places))
    if not sums or not sums[-1]:
        return None
    wanted = share * sums[-1]
    return next(end_of(place) for place, sum_ in zip(places, sums, strict=True) if sum_ >= wanted)
