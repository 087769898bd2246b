"""Baselines for measurements without a mesh."""

import math
from collections.abc import Mapping

import pytest

from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.learning import LEAST_ANSWERS, WINDOW_NATS, Learner, baseline_of_pool
from gatemesh_agent.gates.pool_baseline import SPIKE_NATS, Metric
from gatemesh_common.messages import Decoding

POOL: Mapping[str, float] = {"ppl_mean": 1.55, "ppl_std": 0.28, "entropy_mean": 0.42, "n": 600}


def usual(value: float, script: str = "latin") -> Usual:
    """Return the figures of a greedy answer."""
    return Usual(Decoding.GREEDY, script, {Metric.NLL_WHOLE: value})


def test_it_learns_by_script_and_over_all() -> None:
    """As the manager does from sketches."""
    learner = Learner()
    for number in range(LEAST_ANSWERS):
        learner.add(usual(0.5 + 0.01 * number))
    learner.add(usual(3.0, "han"))
    baseline = learner.baseline()
    latin = baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, "latin")
    over_all = baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, "mixed")
    assert latin is not None
    assert over_all is not None
    assert (latin.count, over_all.count) == (LEAST_ANSWERS, LEAST_ANSWERS + 1)
    assert baseline.normal(Metric.NLL_WHOLE, Decoding.GREEDY, "han") is None
    assert len(learner.entries(least=1)) == 3


@pytest.mark.parametrize("decoding", Decoding)
def test_a_pools_few_figures_are_a_baseline_for_every_answer(decoding: Decoding) -> None:
    """Whatever script it is in."""
    baseline = baseline_of_pool(POOL)
    for metric, above in WINDOW_NATS.items():
        normal = baseline.normal(metric, decoding, "thai")
        assert normal is not None
        assert normal.median == pytest.approx(math.log(1.55) + above)
        assert normal.high == pytest.approx(normal.median + SPIKE_NATS)
    assert baseline.normal(Metric.ENTROPY_WHOLE, decoding, "thai") is None
