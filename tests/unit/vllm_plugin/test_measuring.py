"""From rows of logits to lines, with the tokens one step later."""

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from gatemesh_vllm_plugin.measuring import (
    ROWS_AT_ONCE,
    ROWS_HELD,
    Measuring,
)
from gatemesh_vllm_plugin.watched import DueRow, StepName, WatchedRequest

from .tensors import Column, Table, use_torch_of_lists


class Made:
    """Measuring, and the lines that its jobs made."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], list[bytes]]] = []
        self.measuring = Measuring(self.jobs.append, lambda: 12.0)

    def lines(self) -> list[dict[str, Any]]:
        """All lines since the last look."""
        jobs, self.jobs[:] = list(self.jobs), []
        return [json.loads(line) for job in jobs for line in job()]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """A fresh one."""
    use_torch_of_lists(monkeypatch)
    return Made()


def logits(rows: int, *, is_cuda: bool = False) -> Any:
    """Row n prefers token n."""
    values = [[9.0 if at == row else 0.0 for at in range(rows)] for row in range(rows)]
    return Table(values, is_cuda=is_cuda)


def due(*rows: int, step: int = 0) -> list[DueRow]:
    """These rows, each of a request of its own."""
    return [DueRow(at, at, StepName(f"p{at}", step), WatchedRequest(f"p{at}", [])) for at in rows]


def test_due_rows_are_told(made: Made) -> None:
    """In their order, with the size of the vocabulary."""
    made.measuring.take(logits(3), due(2, 0))
    lines = made.lines()
    assert [line["probe_id"] for line in lines] == ["p2", "p0"]
    assert {line["vocab"] for line in lines} == {3}
    assert all(line["top1_p"] > 0.99 for line in lines)


def test_tokens_are_looked_up_in_the_step_that_took_them(made: Made) -> None:
    """Rank 0 for the best one, and only for rows whose token is known."""
    first, second, third = rows = due(0, 1, 2)
    made.measuring.take(logits(3), rows)
    made.lines()
    made.measuring.settle({first: 0, third: 1})
    told = [(line["probe_id"], line["step"], line["rank"]) for line in made.lines()]
    assert told == [("p0", 0, 0), ("p2", 0, 1)]
    made.measuring.settle({second: 0})
    assert made.lines() == []


def test_tokens_are_found_on_the_device(made: Made) -> None:
    """The engine feeds them to the next step, in rows that may have moved."""
    first, second = rows = due(0, 1)
    made.measuring.take(logits(2), rows)
    made.lines()
    made.measuring.settle_by_row({first: 1, second: 0}, cast("Any", Column([0, 1])))
    assert [line["rank"] for line in made.lines()] == [1, 1]


@pytest.mark.parametrize("is_cuda", [False, True])
def test_memory_is_bounded(made: Made, *, is_cuda: bool) -> None:
    """Many rows are measured in parts, and few distributions are kept."""
    size = ROWS_AT_ONCE if is_cuda else 1
    count = size + ROWS_HELD
    table = logits(count, is_cuda=is_cuda)
    table.device = "cuda:0"
    made.measuring.take(table, due(*range(count)))
    assert len(made.jobs) == -(-count // size)
    assert len(made.lines()) == count
    assert len(made.measuring.held_rows) == ROWS_HELD
