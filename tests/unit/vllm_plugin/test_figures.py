"""The figures, on a tensor that is just lists; the real one is measured inside the real engine."""

import math
from collections.abc import Callable
from typing import Any, cast

import pytest

from gatemesh_vllm_plugin.figures import Figures, measure

NAN, INF = math.nan, math.inf


class Rows:
    """As much of a tensor as the figures use: float[rows, vocabulary]."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows
        self.shape = (len(rows), len(rows[0]))

    def __getitem__(self, chosen: list[int]) -> "Rows":
        return Rows([self.rows[row] for row in chosen])

    def __mul__(self, other: "Rows") -> "Rows":
        pairs = zip(self.rows, other.rows, strict=True)
        return Rows([[a * b for a, b in zip(left, right, strict=True)] for left, right in pairs])

    def each(self, change: Callable[[float], float]) -> "Rows":
        """Every element changed."""
        return Rows([[change(value) for value in row] for row in self.rows])

    def softmax(self, _dimension: int) -> "Rows":
        """Probabilities; NaN for a row that holds one, or an infinity."""
        return Rows([_softmax(row) for row in self.rows])

    def clamp_min(self, low: float) -> "Rows":
        """Nothing below `low`; NaN stays."""
        return self.each(lambda value: value if math.isnan(value) else max(value, low))

    def log(self) -> "Rows":
        """Natural logarithms."""
        return self.each(lambda value: value if math.isnan(value) else math.log(value))

    def isnan(self) -> "Rows":
        """Where there is no number."""
        return self.each(math.isnan)

    def isposinf(self) -> "Rows":
        """Where there is +inf."""
        return self.each(lambda value: value == INF)

    def isneginf(self) -> "Rows":
        """Where there is -inf."""
        return self.each(lambda value: value == -INF)

    def sum(self, _dimension: int) -> "Column":
        """One sum per row."""
        return Column([sum(row) for row in self.rows])

    def amax(self, _dimension: int) -> "Column":
        """One maximum per row; NaN wins."""
        return Column([NAN if any(map(math.isnan, row)) else max(row) for row in self.rows])


class Column:
    """One number per row."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __neg__(self) -> "Column":
        return Column([-value for value in self.values])

    def tolist(self) -> list[float]:
        """The plain numbers."""
        return self.values


def _softmax(row: list[float]) -> list[float]:
    top = max(row)
    if top == INF or any(map(math.isnan, row)):
        return [NAN] * len(row)
    weights = [math.exp(value - top) for value in row]
    return [weight / sum(weights) for weight in weights]


def figures_of(*rows: list[float], chosen: tuple[int, ...] = (0,)) -> list[Figures]:
    """Figures of some rows of a small batch."""
    return measure(cast("Any", Rows(list(rows))), chosen)


def test_equal_logits_have_the_largest_entropy() -> None:
    """ln of the vocabulary."""
    [found] = figures_of([3.0] * 8)
    assert found.entropy_nats == pytest.approx(math.log(8))
    assert found.top1_p == pytest.approx(1 / 8)


def test_a_certain_token_has_none() -> None:
    """Nothing is left for the others."""
    [found] = figures_of([100.0, 0.0, 0.0])
    assert found.entropy_nats == pytest.approx(0.0, abs=1e-9)
    assert found.top1_p == pytest.approx(1.0)


def test_masked_tokens_do_not_spoil_the_entropy() -> None:
    """A grammar writes -inf: probability 0, no NaN."""
    [found] = figures_of([0.0, 0.0, -INF, -INF])
    assert found.entropy_nats == pytest.approx(math.log(2))
    assert found.top1_p == pytest.approx(0.5)
    assert (found.nan_count, found.pos_inf_count, found.neg_inf_count) == (0, 0, 2)


@pytest.mark.parametrize(
    ("row", "nan", "pos_inf"), [([NAN, 0.0, NAN], 2, 0), ([INF, 0.0, 0.0], 0, 1)]
)
def test_corrupt_logits_are_counted(row: list[float], nan: int, pos_inf: int) -> None:
    """There is no entropy, and the counts say why."""
    [found] = figures_of(row)
    assert math.isnan(found.entropy_nats)
    assert math.isnan(found.top1_p)
    assert (found.nan_count, found.pos_inf_count) == (nan, pos_inf)


def test_rows_come_in_the_order_asked_for() -> None:
    """Only the due rows are computed."""
    first, second = figures_of([0.0, 0.0], [9.0, 9.0], [100.0, 0.0], chosen=(2, 0))
    assert first.top1_p == pytest.approx(1.0)
    assert second.top1_p == pytest.approx(0.5)
