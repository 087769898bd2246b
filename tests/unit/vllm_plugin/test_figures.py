"""The figures, on a tensor that is just lists; the real one is measured inside the real engine."""

import math
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_vllm_plugin.device import softmax_on_device
from gatemesh_vllm_plugin.figures import (
    Choice,
    Figures,
    Measured,
    choice_of,
    figures_of,
    look_up,
    measure,
)

from .tensors import INF, NAN, Column, Table


def measured_table(table: Table) -> Measured:
    """Measure all rows of a table."""
    logits: Any = table
    return measure(logits, *softmax_on_device(logits))


def measured(*rows: list[float], is_cuda: bool = False) -> list[Figures]:
    """Figures of a small batch."""
    found = measured_table(Table(list(rows), is_cuda=is_cuda))
    columns = [column.tolist() for column in found.columns]
    return [figures_of(row) for row in zip(*columns, strict=True)]


def test_equal_logits_have_the_largest_entropy() -> None:
    """ln of the vocabulary, and no variance."""
    [found] = measured([3.0] * 8)
    assert found.entropy_nats == pytest.approx(math.log(8))
    assert found.top1_p == pytest.approx(1 / 8)
    assert found.variance == pytest.approx(0.0, abs=1e-9)


def test_a_certain_token_has_none() -> None:
    """Nothing is left for the others."""
    [found] = measured([100.0, 0.0, 0.0])
    assert found.entropy_nats == pytest.approx(0.0, abs=1e-9)
    assert found.top1_p == pytest.approx(1.0)


def test_masked_tokens_do_not_spoil_the_entropy() -> None:
    """A grammar writes -inf: probability 0, no NaN."""
    [found] = measured([0.0, 0.0, -INF, -INF])
    assert found.entropy_nats == pytest.approx(math.log(2))
    assert found.top1_p == pytest.approx(0.5)
    assert (found.nan_count, found.pos_inf_count) == (0, 0)


@pytest.mark.parametrize("is_cuda", [False, True])
@pytest.mark.parametrize(
    ("row", "nan", "pos_inf"), [([NAN, 0.0, NAN], 2, 0), ([INF, 0.0, 0.0], 0, 1)]
)
def test_corrupt_logits_are_counted(
    row: list[float], nan: int, pos_inf: int, *, is_cuda: bool
) -> None:
    """There is no entropy, and the counts say why; the row beside it is sound."""
    found, sound = measured(row, [0.0, 0.0, 0.0], is_cuda=is_cuda)
    assert math.isnan(found.entropy_nats)
    assert math.isnan(found.top1_p)
    assert math.isnan(found.variance)
    assert (found.nan_count, found.pos_inf_count) == (nan, pos_inf)
    assert sound.entropy_nats == pytest.approx(math.log(3))


def test_only_masked_tokens_are_no_corruption() -> None:
    """A grammar that allows nothing: no figures, and no NaN among the logits."""
    [found] = measured([-INF, -INF])
    assert math.isnan(found.entropy_nats)
    assert (found.nan_count, found.pos_inf_count) == (0, 0)


def test_a_healthy_batch_on_the_host_is_not_counted() -> None:
    """Two passes over the vocabulary are spared."""
    assert len(measured_table(Table([[1.0, 2.0]])).columns) == 3
    assert len(measured_table(Table([[1.0, 2.0]], is_cuda=True)).columns) == 5


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=50))
def test_figures_are_those_of_the_definition(logits: list[float]) -> None:
    """Entropy, top share and variance of the surprisal over the whole vocabulary."""
    weights = [math.exp(value - max(logits)) for value in logits]
    shares = [weight / sum(weights) for weight in weights]
    entropy = -sum(share * math.log(share) for share in shares if share)
    square = sum(share * math.log(share) ** 2 for share in shares if share)
    [found] = measured(logits)
    assert found.entropy_nats == pytest.approx(entropy, abs=1e-9)
    assert found.top1_p == pytest.approx(max(shares))
    assert found.variance == pytest.approx(square - entropy**2, abs=1e-6)


@pytest.mark.parametrize("is_cuda", [False, True])
@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2], [Choice(-1.0, 1), Choice(-0.5, 0)]),
        ([0, 2], [Choice(-0.5, 0), Choice(-0.5, 0)]),
    ],
)
def test_a_choice_has_its_rank(
    tokens: list[float], expected: list[Choice], *, is_cuda: bool
) -> None:
    """0 is the likeliest token; where all are, nothing is counted on the host."""
    table: Any = Table([[-0.5, -1.0, -3.0], [-3.0, -1.0, -0.5]], is_cuda=is_cuda)
    columns = look_up(table, cast("Any", Column(tokens)))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert [choice_of(row) for row in rows] == expected
