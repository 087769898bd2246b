"""The false-positive rate of the surprisal test, on a small simulation."""

import math
import random

import pytest
from benchmarks.surprise import (
    LEVELS_NATS,
    SHAPES,
    Draw,
    drawn_step,
    highest_score,
    logprobs_of,
    main,
    scores,
    summary,
)

from gatemesh_agent.gates.l3_distribution import SURPRISE_NATS
from gatemesh_agent.gates.steps import TokenStep


def test_fair_draws_stay_below_the_bound() -> None:
    """At every level, the share of answers above it is at most e to the minus level."""
    for level in summary(scores(answers=150, steps=60, seed=7)):
        assert level["share"] <= level["bound"] + 0.01
    assert SURPRISE_NATS in LEVELS_NATS


@pytest.mark.parametrize("shape", SHAPES)
def test_tokens_from_elsewhere_are_caught(shape: Draw) -> None:
    """Tokens drawn evenly from all pass for nobody's choice, where the figures say anything."""
    rng = random.Random(5)
    steps = [evenly(drawn_step(rng, 1.0, shape), rng) for _ in range(120)]
    assert highest_score(steps) > SURPRISE_NATS


def evenly(step: TokenStep, rng: random.Random) -> TokenStep:
    """Return the step with another token, far below the known ones nine times in ten."""
    if rng.random() < 0.1:
        return step
    last = min(value for value in step.top_logprobs if value is not None)
    return step._replace(chosen_logprob=last - 1.0)


def test_log_probabilities_add_up() -> None:
    """The simulated vocabulary is whole."""
    assert sum(math.exp(value) for value in logprobs_of([1.0, 2.0, 3.0])) == pytest.approx(1.0)


def test_the_command_says_whether_the_rate_holds() -> None:
    """Its exit code is the answer."""
    assert main(["--answers", "5", "--steps", "20"]) == 0
