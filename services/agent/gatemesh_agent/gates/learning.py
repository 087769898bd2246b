"""Baselines without a mesh: learnt from answers at hand, or from a few figures of a pool. Pure."""

import math
from collections.abc import Mapping
from typing import Any

from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.pool_baseline import (
    BANDS,
    SIGMA_PER_MAD,
    WIDTHS,
    Kind,
    Metric,
    PoolBaseline,
)
from gatemesh_common.messages import BaselineEntry, Decoding
from gatemesh_common.samples import ANY_SCRIPT, BAND_MARK, any_script
from gatemesh_common.sketches import Histogram, entry_of

LEAST_ANSWERS = 10
WINDOW_NATS = {Metric.NLL_WHOLE: 0.0, Metric.NLL_64: 0.2, Metric.NLL_16: 0.5}
"""By how much the worst window of an answer usually lies above its mean. Source: clean corpus."""


class Learner:
    """Learns what is normal from answers that are known to be good."""

    def __init__(self) -> None:
        self._histograms: dict[Kind, Histogram] = {}

    def add(self, usual: Usual) -> None:
        """Take in one answer, as part of its script and of all scripts."""
        for script in (usual.script, any_script(usual.script)):
            for metric, value in usual.values.items():
                kind = (metric.value, usual.decoding, script)
                known = self._histograms.setdefault(kind, Histogram(WIDTHS[metric]))
                known.add(value)

    def entries(self, least: int = LEAST_ANSWERS) -> tuple[BaselineEntry, ...]:
        """Return what is normal, of each kind that at least so many answers are known of."""
        found = [entry_of(*kind, histogram) for kind, histogram in self._histograms.items()]
        return tuple(entry for entry in found if entry and entry.count >= least)

    def baseline(self, least: int = LEAST_ANSWERS) -> PoolBaseline:
        """Return the baseline of these entries."""
        return PoolBaseline.of(self.entries(least))


def baseline_of_pool(figures: Mapping[str, Any]) -> PoolBaseline:
    """Return a baseline for all answers of a pool of which only few figures are known.

    They are mean and spread of the perplexity of past answers, `ppl_mean` and `ppl_std`, and their
    number `n`. What the windows do is not among them and is assumed.
    """
    mean, spread = float(figures["ppl_mean"]), float(figures["ppl_std"])
    median = math.log(max(mean, 1.0))
    mad = math.log1p(spread / max(mean, 1.0)) / SIGMA_PER_MAD
    entries = [
        BaselineEntry(
            metric=metric,
            decoding=decoding,
            script=script,
            count=int(figures["n"]),
            median=median + above,
            mad=mad,
        )
        for metric, above in WINDOW_NATS.items()
        for decoding in Decoding
        for script in (ANY_SCRIPT, *(f"{ANY_SCRIPT}{BAND_MARK}{band}" for band in BANDS.values()))
    ]
    return PoolBaseline.of(entries, every_script=True)
