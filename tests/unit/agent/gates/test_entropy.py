"""The bounds hold against the exact entropy of whole vocabularies."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.entropy import known_ranks, measure
from gatemesh_agent.gates.steps import TokenStep

LOGITS = st.lists(st.floats(-30, 30), min_size=3, max_size=200)
TOLERANCE = 1e-7


def logprobs_of(logits: list[float]) -> list[float]:
    """Return the log probabilities of a vocabulary."""
    top = max(logits)
    total = top + math.log(sum(math.exp(value - top) for value in logits))
    return [value - total for value in logits]


def exact_entropy(logprobs: list[float]) -> float:
    """Return the entropy over all tokens."""
    return -sum(math.exp(value) * value for value in logprobs)


def report(logprobs: list[float], chosen: int, k: int) -> TokenStep:
    """Report a step as vLLM does: the sampled token first, k entries in all."""
    order = sorted(range(len(logprobs)), key=lambda at: -logprobs[at])
    rest = [at for at in order if at != chosen][: k - 1]
    return TokenStep("x", logprobs[chosen], tuple(logprobs[at] for at in (chosen, *rest)))


@given(LOGITS, st.integers(2, 20), st.data())
def test_the_bound_lies_below_the_exact_entropy(
    logits: list[float], k: int, data: st.DataObject
) -> None:
    """A rule that fires on a bound is right about the whole distribution."""
    logprobs = logprobs_of(logits)
    chosen = data.draw(st.integers(0, len(logits) - 1))
    step = report(logprobs, chosen, min(k, len(logits)))
    assert measure(step).lower <= exact_entropy(logprobs) + TOLERANCE


@given(LOGITS, st.integers(3, 20), st.data())
def test_a_lost_candidate_does_not_break_the_bound(
    logits: list[float], k: int, data: st.DataObject
) -> None:
    """Ids that decode alike may hide any of the reported tokens."""
    logprobs = logprobs_of(logits)
    step = report(logprobs, 0, min(k, len(logits)))
    lost = data.draw(st.integers(0, len(step.top_logprobs) - 1))
    left = step.top_logprobs[:lost] + step.top_logprobs[lost + 1 :]
    found = measure(TokenStep("x", step.chosen_logprob, left, complete=False))
    assert found.lower <= exact_entropy(logprobs) + TOLERANCE


@given(LOGITS, st.integers(0, 2))
def test_a_token_alone(logits: list[float], chosen: int) -> None:
    """Without candidates only the token against all others is known."""
    logprobs = logprobs_of(logits)
    found = measure(TokenStep("x", logprobs[chosen]))
    assert found.lower <= exact_entropy(logprobs) + TOLERANCE


@given(LOGITS, st.integers(2, 20))
def test_the_mean_of_the_clipped_surprisal_is_exact(logits: list[float], k: int) -> None:
    """The excess of a fairly drawn token is zero in the mean."""
    logprobs = logprobs_of(logits)
    order = sorted(logprobs, reverse=True)[: min(k, len(logits))]
    excess = [measure(TokenStep("x", value, tuple(order))).excess for value in logprobs]
    mean = sum(math.exp(value) * item for value, item in zip(logprobs, excess, strict=True))
    assert mean == pytest.approx(0, abs=1e-6)


def test_flat() -> None:
    """A uniform distribution has the entropy ln V, from any k."""
    value = -math.log(49_152)
    found = measure(TokenStep("x", value, (value,) * 20))
    assert found.lower == pytest.approx(10.8027, abs=1e-3)
    assert found.spread == 0


@pytest.mark.parametrize(
    ("tops", "ranks"),
    [
        ((-5.0, -0.5, -2.0), [-0.5, -2.0]),
        ((-1.0, -0.5, -2.0), [-0.5, -1.0, -2.0]),
        ((-0.5, -2.0), [-0.5, -2.0]),
        ((-2.0, -2.0), [-2.0, -2.0]),
        ((None, -2.0), [-2.0]),
        ((), []),
    ],
)
def test_the_sampled_token_below_all_others_is_left_out(
    tops: tuple[float | None, ...], ranks: list[float]
) -> None:
    """Ranks between it and the rest may be missing."""
    assert known_ranks(tops) == ranks


@pytest.mark.parametrize(
    ("reported", "known"),
    [
        pytest.param((), [], id="none"),
        pytest.param((None,), [], id="only-null"),
        pytest.param((None, None), [], id="only-nulls"),
        pytest.param((-1.0,), [-1.0], id="one"),
        pytest.param((-1.0, None, -0.5), [-0.5], id="null-between"),
        pytest.param((None, -0.5, -1.0), [-0.5, -1.0], id="null-first"),
        pytest.param((-3.0, -0.5, -1.0), [-0.5, -1.0], id="sampled-is-last"),
        pytest.param((-1.0, -0.5, -3.0), [-0.5, -1.0, -3.0], id="sampled-is-second"),
    ],
)
def test_ranks_that_are_known(reported: tuple[float | None, ...], known: list[float]) -> None:
    """Nulls are no ranks, and below the sampled token ranks may be missing."""
    assert known_ranks(reported) == known


def test_a_rank_that_weighs_nothing_is_left_out_of_the_sums() -> None:
    """Clamps such as -9999 change the last rank and nothing else."""
    with_clamp = measure(TokenStep("x", -0.5, (-0.5, -1.0, -9999.0)))
    without = measure(TokenStep("x", -0.5, (-0.5, -1.0)))
    assert (with_clamp.mass, with_clamp.top) == (without.mass, without.top)
    assert with_clamp.clip == pytest.approx(9999.0)
    # With what is left over beside it, it would prove a flat distribution.
    assert with_clamp.lower == pytest.approx(without.lower)


@given(LOGITS, st.integers(2, 20))
def test_without_a_draw_only_the_variance_is_missing(logits: list[float], k: int) -> None:
    """Greedy answers are spared a sum that no rule of theirs reads."""
    step = report(logprobs_of(logits), 0, min(k, len(logits)))
    assert measure(step, drawn=False) == measure(step)._replace(variance=0.0)
