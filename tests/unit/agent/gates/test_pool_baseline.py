"""Limits and scores follow from what is published."""

import math
import random
import statistics

import pytest

from gatemesh_agent.gates.pool_baseline import (
    CLIP,
    COLLAPSE_SHARE,
    LEAST_SIGMA,
    SIGMA_PER_MAD,
    SPIKE_NATS,
    SPIKE_SIGMAS,
    TAIL_ANSWERS,
    WIDTHS,
    Metric,
    Normal,
    PoolBaseline,
    band_of,
)
from gatemesh_common.messages import BaselineEntry, Decoding
from gatemesh_common.sketches import Histogram, entry_of


def entry(
    metric: Metric = Metric.NLL_WHOLE, script: str = "latin", **fields: object
) -> BaselineEntry:
    """Return an entry of greedy answers."""
    base = {"metric": metric, "decoding": "greedy", "script": script}
    return BaselineEntry.model_validate(
        base | {"count": 500, "median": 0.5, "mad": 0.1, "quantiles": None} | fields
    )


def learnt(values: list[float], metric: Metric = Metric.NLL_WHOLE) -> Normal:
    """Return what is normal by some answers."""
    histogram = Histogram(WIDTHS[metric])
    for value in values:
        histogram.add(value)
    found = entry_of(metric, Decoding.GREEDY, "latin", histogram)
    assert found is not None
    return Normal.of(found)


def test_a_spike_is_three_times_the_perplexity() -> None:
    """Where the spread is small; in log space, so the difference is ln 3."""
    assert Normal.of(entry()).high == pytest.approx(0.5 + SPIKE_NATS)


def test_a_wide_pool_has_a_wide_limit() -> None:
    """Three times the perplexity is nothing unusual there."""
    normal = Normal.of(entry(mad=0.5))
    assert normal.high == pytest.approx(0.5 + SPIKE_SIGMAS * SIGMA_PER_MAD * 0.5)


def test_a_limit_lies_beyond_what_was_seen() -> None:
    """Heavy tails are part of normal."""
    tail = (*(0.1 * n for n in range(10)), 9.0)
    assert Normal.of(entry(quantiles=tail)).high > 9.0


@pytest.mark.parametrize(("count", "known"), [(TAIL_ANSWERS - 1, False), (TAIL_ANSWERS, True)])
def test_a_collapse_needs_a_known_floor(count: int, known: bool) -> None:  # noqa: FBT001
    """A healthy greedy answer that copies lies near zero: only many answers show how near."""
    floor = tuple(0.4 + 0.02 * n for n in range(11))
    normal = Normal.of(entry(count=count, quantiles=floor))
    expected = 0.5 * COLLAPSE_SHARE if known else -math.inf
    assert normal.low == pytest.approx(expected)


def test_a_pool_of_one_prompt_has_a_least_spread() -> None:
    """Nothing is divided by zero."""
    assert Normal.of(entry(mad=0.0)).sigma == LEAST_SIGMA


def test_scores_are_normal_whatever_the_shape() -> None:
    """Skew and heavy tails of the figures do not reach the charts."""
    rng = random.Random(3)
    normal = learnt([rng.gammavariate(1.5, 0.4) for _ in range(20_000)])
    scores = [normal.score(rng.gammavariate(1.5, 0.4)) for _ in range(20_000)]
    assert statistics.mean(scores) == pytest.approx(0.0, abs=0.05)
    assert statistics.pstdev(scores) == pytest.approx(1.0, abs=0.05)


def test_scores_rise_and_are_clipped() -> None:
    """One wild answer is not worth ten."""
    normal = learnt([0.01 * n for n in range(1000)])
    scores = [normal.score(0.1 * n - 20) for n in range(600)]
    assert scores == sorted(scores)
    assert (scores[0], scores[-1]) == (-CLIP, CLIP)


def test_a_baseline_of_median_and_mad_alone() -> None:
    """As an operator or a test may write it."""
    normal = Normal.of(entry())
    assert normal.score(0.5) == 0.0
    assert normal.score(0.5 + SIGMA_PER_MAD * 0.1) == pytest.approx(1.0)


def test_equal_quantiles_count_as_the_most_usual() -> None:
    """Half of all answers say the same: that is usual, not rare."""
    assert learnt([0.0] * 700 + [1.0] * 300).score(0.01) == pytest.approx(0.0, abs=0.6)
    flat = Normal.of(entry(quantiles=(0.0, 0.1, *(0.5,) * 7, 0.9, 1.0)))
    assert flat.score(0.5) == 0.0


@pytest.mark.parametrize(
    ("temperature", "band"),
    [(None, ""), (0.0, ""), (0.3, "~cool"), (0.31, "~warm"), (0.85, "~warm"), (0.86, "~hot")],
)
def test_bands(temperature: float | None, band: str) -> None:
    """Ends included; greedy answers have none."""
    assert band_of(temperature) == band


def test_texts_without_a_script_are_measured_against_all() -> None:
    """A named script that is not known yet is not: its usual figures differ."""
    baseline = PoolBaseline.of([entry(script="any"), entry(script="latin", median=0.7)])
    for script, median in (("latin", 0.7), ("mixed", 0.5), ("none", 0.5)):
        found = baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, script)
        assert found is not None
        assert found.median == median
    assert baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, "thai") is None
    assert baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, "mixed~warm") is None
    assert baseline.normal(Metric.NLL_WHOLE, Decoding.SAMPLED, "latin") is None
