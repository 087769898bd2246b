"""The faults, on a tensor that is just lists; the real one is tried inside the real engine."""

import math
from typing import Any, cast

import pytest

from gatemesh_vllm_chaos.drill import Drill, Fault
from gatemesh_vllm_chaos.faults import SPOILERS, spoil


class Rows:
    """As much of a tensor as the faults use: float[rows, vocabulary]."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows
        self.shape = (len(rows), len(rows[0]))

    def __getitem__(self, chosen: list[int]) -> "Rows":
        return Rows([list(self.rows[row]) for row in chosen])

    def __setitem__(self, where: Any, value: Any) -> None:
        chosen, column = where if isinstance(where, tuple) else (where, None)
        for position, row in enumerate(chosen):
            if column is not None:
                self.rows[row][column] = value[position]
            elif isinstance(value, Rows):
                self.rows[row] = value.rows[position]
            else:
                self.rows[row] = [value] * self.shape[1]

    def roll(self, shift: int, _dimension: int) -> "Rows":
        """The columns moved to the right."""
        return Rows([[row[(at - shift) % len(row)] for at in range(len(row))] for row in self.rows])

    def amax(self, _dimension: int) -> "Vector":
        """The largest of each row."""
        return Vector([max(row) for row in self.rows])


class Vector:
    """One number per row."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __getitem__(self, row: int) -> float:
        return self.values[row]

    def __add__(self, other: float) -> "Vector":
        return Vector([value + other for value in self.values])


def spoiled(drill: Drill, rows: list[int]) -> list[list[float]]:
    """Two rows after a drill."""
    logits = Rows([[0.0, 1.0, 2.0], [5.0, 4.0, 3.0]])
    spoil(cast("Any", logits), rows, drill)
    return logits.rows


def test_every_fault_is_carried_out() -> None:
    """The table covers the whole enumeration."""
    assert set(SPOILERS) == set(Fault)


def test_nan_leaves_no_number() -> None:
    """Nothing in the row compares."""
    assert all(math.isnan(value) for value in spoiled(Drill(Fault.NAN, 2), [0])[0])


def test_flat_makes_all_alike() -> None:
    """Every token is as likely as any other."""
    assert spoiled(Drill(Fault.FLAT, 2), [0])[0] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("by", "expected"), [(1, [2.0, 0.0, 1.0]), (-1, [1.0, 2.0, 0.0])])
def test_shift_moves_every_logit(by: int, expected: list[float]) -> None:
    """The likeliest token becomes its neighbour."""
    assert spoiled(Drill(Fault.SHIFT, 2, shift_by=by), [0])[0] == expected


@pytest.mark.parametrize("token_id", [1, 4])
def test_stuck_wins_by_far(token_id: int) -> None:
    """Also with an id beyond the vocabulary, which wraps round."""
    assert spoiled(Drill(Fault.STUCK, 2, token_id=token_id), [0])[0] == [0.0, 22.0, 2.0]


@pytest.mark.parametrize("fault", Fault)
def test_other_rows_are_untouched(fault: Fault) -> None:
    """Neighbours in the batch keep their answers."""
    assert spoiled(Drill(fault, 2), [0])[1] == [5.0, 4.0, 3.0]
