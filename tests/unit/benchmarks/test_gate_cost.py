"""The cost is measured while every gate is at work."""

import math
import random
from collections.abc import Iterator
from itertools import count

import pytest
from benchmarks.gate_cost import (
    BATCH,
    CANDIDATES,
    REQUEST,
    check,
    measure_cost,
    synthetic_shape,
    synthetic_step,
)
from benchmarks.gate_inputs import InputError

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.steps import TokenStep


def ticks() -> Iterator[float]:
    """Yield seconds that grow by one with each look at them."""
    return map(float, count())


def test_one_figure_for_each_stretch() -> None:
    """A batch takes one tick here, whatever its place."""
    seconds = ticks()
    found = measure_cost(random.Random(1), lambda: next(seconds), marks=(0, 100, 200))
    assert found == {name: round(1e6 / BATCH, 2) for name in ("1-100", "101-200")}


def test_steps_are_distributions() -> None:
    """Candidates that add up to more than one would switch L2 and L3 off, as they once did."""
    rng = random.Random(1)
    shapes = [synthetic_shape(rng) for _ in range(50)]
    for _ in range(200):
        step = synthetic_step(rng, shapes)
        ranks = [value for value in step.top_logprobs if value is not None]
        assert len(ranks) in (CANDIDATES, CANDIDATES + 1)
        assert ranks[0] == step.chosen_logprob
        assert sum(map(math.exp, ranks)) <= 1.0 + 1e-9


def test_a_gate_that_abstains_is_no_measurement() -> None:
    """Raw logits are not judged, so nothing is known of the cost."""
    chain = GateChain(context_of(REQUEST))
    chain.feed_text("Once upon a time there was a king who had no crown.")
    chain.feed_steps([TokenStep("king", 4.0, (4.0, 3.0))])
    with pytest.raises(InputError, match="logprobs"):
        check(chain)
