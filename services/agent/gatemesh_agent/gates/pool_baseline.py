"""What is normal in a pool: limits and scores of single figures. Pure."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist

from gatemesh_common.messages import BaselineEntry, Decoding
from gatemesh_common.samples import BAND_MARK, SHARES, any_script

SIGMA_PER_MAD = 1.4826
SPIKE_NATS = math.log(3.0)
"""Three times the usual perplexity, as a difference of logarithms."""
SPIKE_SIGMAS = 6.0
SPREAD_SIGMAS = 1.0
"""Beyond the largest figure that is usual."""
COLLAPSE_SHARE = 1 / 3
FLOOR_SHARE = 0.8
"""Of the smallest figure that is usual."""
TAIL_ANSWERS = 1000
"""Answers from which on the rarest quantiles are known."""
LEAST_SIGMA = 0.02
"""Nats; a pool of one prompt has no spread of its own."""
CLIP = 3.0
"""Largest score; rarer figures prove no more, since real tails are heavier than normal ones."""
NORMAL = NormalDist()
PLACES = tuple(NORMAL.inv_cdf(share) for share in SHARES)


BANDS = {0.3: "cool", 0.85: "warm", math.inf: "hot"}
"""Bands of temperature, by upper end: the surprisal of drawn tokens doubles from 0.7 to 1."""


def band_of(temperature: float | None) -> str:
    """Return what is added to the script of answers drawn at a temperature."""
    if not temperature:
        return ""
    return BAND_MARK + next(band for end, band in BANDS.items() if temperature <= end)


class Metric(StrEnum):
    """The figures of an answer that have a baseline; windows count the most extreme one."""

    NLL_16 = "nll_16"
    NLL_64 = "nll_64"
    NLL_WHOLE = "nll_whole"
    NLL_64_LOW = "nll_64_low"
    ENTROPY_16 = "entropy_16"
    ENTROPY_WHOLE = "entropy_whole"
    TOP1_WHOLE = "top1_whole"
    ENTROPY_CAPPED = "entropy_capped"
    """Each step counts for half a nat at most: says how seldom an engine is sure of a token."""


FINE = frozenset({Metric.TOP1_WHOLE, Metric.ENTROPY_CAPPED})
WIDTHS = {metric: 0.005 if metric in FINE else 0.02 for metric in Metric}
"""Width of a sketch's bin: nats, or share."""

FALLBACK_SCRIPTS = frozenset({"none", "mixed"})
"""Texts without a script of their own are measured against all answers."""


@dataclass(frozen=True, slots=True)
class Normal:
    """What is normal for one figure of one kind of answer."""

    count: int
    median: float
    mad: float
    sigma: float
    high: float
    """Beyond this a surprisal is a spike."""
    low: float
    """Below this it is a collapse; minus infinity where that is not known."""
    values: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    """Normal scores of these values."""

    @classmethod
    def of(cls, entry: BaselineEntry) -> "Normal":
        """Derive limits and scores from a published entry."""
        sigma = max(SIGMA_PER_MAD * entry.mad, LEAST_SIGMA)
        known = entry.quantiles if entry.quantiles and len(entry.quantiles) == len(SHARES) else None
        high = entry.median + max(SPIKE_NATS, SPIKE_SIGMAS * sigma)
        low = -math.inf
        if known is not None:
            high = max(high, known[-1] + SPREAD_SIGMAS * sigma)
            if entry.count >= TAIL_ANSWERS:
                low = min(entry.median * COLLAPSE_SHARE, known[0] * FLOOR_SHARE)
        rarest = NORMAL.inv_cdf(entry.count / (entry.count + 1)) if entry.count else 0.0
        pairs = [pair for pair in zip(known or (), PLACES, strict=False) if abs(pair[1]) <= rarest]
        return cls(
            entry.count,
            entry.median,
            entry.mad,
            sigma,
            high,
            low,
            tuple(value for value, _ in pairs),
            tuple(place for _, place in pairs),
        )

    def score(self, value: float) -> float:
        """Return how unusual a figure is, as a normal score: 0 is usual, beyond 2 one in 40."""
        values, scores = self.values, self.scores
        if not values:
            raw = (value - self.median) / self.sigma
        elif value <= values[0]:
            raw = scores[bisect_right(values, values[0]) - 1] + (value - values[0]) / self.sigma
        elif value >= values[-1]:
            raw = scores[bisect_left(values, values[-1])] + (value - values[-1]) / self.sigma
        else:
            raw = self._between(value)
        return max(-CLIP, min(raw, CLIP))

    def _between(self, value: float) -> float:
        values, scores = self.values, self.scores
        first, after = bisect_left(values, value), bisect_right(values, value)
        if first < after:
            # Several quantiles share this figure: the most usual of them counts.
            return min(scores[first:after], key=abs)
        width = values[after] - values[after - 1]
        share = (value - values[after - 1]) / width
        return scores[after - 1] + share * (scores[after] - scores[after - 1])


Kind = tuple[str, Decoding, str]


@dataclass(frozen=True, slots=True)
class PoolBaseline:
    """What is normal for one model version in one pool."""

    normals: dict[Kind, Normal] = field(default_factory=dict)
    every_script: bool = False
    """True when a script without an entry is measured against all answers."""

    @classmethod
    def of(cls, entries: Iterable[BaselineEntry], *, every_script: bool = False) -> "PoolBaseline":
        """Build it from published entries."""
        normals = {
            (entry.metric, entry.decoding, entry.script): Normal.of(entry) for entry in entries
        }
        return cls(normals, every_script)

    def normal(self, metric: Metric, decoding: Decoding, script: str) -> Normal | None:
        """Return what is normal for a figure; None while it is not known."""
        found = self.normals.get((metric, decoding, script))
        bare = script.partition(BAND_MARK)[0]
        if found is None and (self.every_script or bare in FALLBACK_SCRIPTS):
            return self.normals.get((metric, decoding, any_script(script)))
        return found


NO_BASELINE = PoolBaseline()
