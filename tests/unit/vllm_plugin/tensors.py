"""As much of torch as the plugin uses, on lists; real tensors are met inside the real engine."""

import math
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

NAN, INF = math.nan, math.inf
Numbers = list[float]


class Table:
    """float[rows, columns]."""

    def __init__(self, rows: list[list[float]], *, is_cuda: bool = False) -> None:
        self.rows = rows
        self.is_cuda = is_cuda
        self.shape = (len(rows), len(rows[0]) if rows else 0)
        self.dtype = "float32"

    def _zipped(self, other: "Table", take: Callable[[float, float], float]) -> "Table":
        pairs = zip(self.rows, other.rows, strict=True)
        return self._like([[take(a, b) for a, b in zip(*both, strict=True)] for both in pairs])

    def _like(self, rows: list[list[float]]) -> "Table":
        return Table(rows, is_cuda=self.is_cuda)

    def __mul__(self, other: "Table") -> "Table":
        return self._zipped(other, lambda a, b: a * b)

    def __getitem__(self, rows: slice) -> "Table":
        return self._like(self.rows[rows])

    def mul_(self, other: "Table") -> "Table":
        """Multiply in place."""
        self.rows = (self * other).rows
        return self

    def __gt__(self, other: "Table") -> "Table":
        pairs = zip(self.rows, other.rows, strict=True)
        return self._like([[float(a > right[0]) for a in left] for left, right in pairs])

    def each(self, change: Callable[[float], float]) -> "Table":
        """Every element changed; NaN stays."""
        return self._like([[v if math.isnan(v) else change(v) for v in row] for row in self.rows])

    def log_softmax(self, _dimension: int) -> "Table":
        """Log probabilities; NaN for a row that holds one, or +inf."""
        return self._like([_log_softmax(row) for row in self.rows])

    def clamp_min_(self, low: float) -> "Table":
        """Nothing below `low`, in place."""
        self.rows = self.each(lambda value: max(value, low)).rows
        return self

    def exp(self) -> "Table":
        """Exponentials."""
        return self.each(math.exp)

    def isnan(self) -> "Table":
        """Where there is no number."""
        return self._like([[float(math.isnan(value)) for value in row] for row in self.rows])

    def isposinf(self) -> "Table":
        """Where there is +inf."""
        return self._like([[float(value == INF) for value in row] for row in self.rows])

    def sum(self, _dimension: int) -> "Column":
        """One sum per row."""
        return self._column([sum(row) for row in self.rows])

    def amax(self, _dimension: int) -> "Column":
        """One maximum per row; NaN wins."""
        return self._column([NAN if any(map(math.isnan, row)) else max(row) for row in self.rows])

    def _column(self, values: list[float]) -> "Column":
        return Column(values, is_cuda=self.is_cuda)

    def index_select(self, _dimension: int, index: "Column") -> "Table":
        """Some rows."""
        return self._like([self.rows[int(at)] for at in index.values])

    def gather(self, _dimension: int, index: "Table") -> "Table":
        """One element per row."""
        pairs = zip(self.rows, index.rows, strict=True)
        return self._like([[row[int(at[0])]] for row, at in pairs])

    def squeeze(self, _dimension: int) -> "Column":
        """The only column."""
        return self._column([row[0] for row in self.rows])

    def tolist(self) -> list[list[float]]:
        """The plain numbers."""
        return self.rows

    def copy_(self, other: "Table", *, non_blocking: bool) -> None:
        """Take over another's numbers."""
        assert non_blocking
        self.rows = other.rows

    def _same(self) -> "Table":
        return self

    float = _same


class Column:
    """One number per row."""

    def __init__(self, values: list[float], *, is_cuda: bool = False) -> None:
        self.values = values
        self.shape = (len(values),)
        self.is_cuda = is_cuda
        self.moved: dict[str, Any] = {}

    def __neg__(self) -> "Column":
        return Column([-value for value in self.values], is_cuda=self.is_cuda)

    def isnan(self) -> "Column":
        """Where there is no number."""
        return Column([float(math.isnan(value)) for value in self.values])

    def __ge__(self, other: "Column") -> "Column":
        return Column([float(a >= b) for a, b in zip(self.values, other.values, strict=True)])

    def all(self) -> bool:
        """Whether none is 0."""
        return all(self.values)

    def new_zeros(self, shape: tuple[int]) -> "Column":
        """As many zeros."""
        return Column([0.0] * shape[0])

    def any(self) -> bool:
        """Whether any is not 0."""
        return any(self.values)

    def _same(self) -> "Column":
        return self

    # All numbers here are floats.
    float = long = _same

    def unsqueeze(self, _dimension: int) -> Table:
        """As a table of one column."""
        return Table([[value] for value in self.values], is_cuda=self.is_cuda)

    def index_select(self, _dimension: int, index: "Column") -> "Column":
        """Some rows."""
        return Column([self.values[int(at)] for at in index.values], is_cuda=self.is_cuda)

    def to(self, device: object, *, non_blocking: bool) -> "Column":
        """Remember how it was moved."""
        moved = Column(self.values, is_cuda=True)
        moved.moved = {"device": device, "non_blocking": non_blocking}
        return moved

    def tolist(self) -> Numbers:
        """The plain numbers."""
        return self.values


class Event:
    """Counts who waits for it."""

    waited = 0

    def record(self) -> None:
        """Mark this point."""

    def synchronize(self) -> None:
        """Wait."""
        Event.waited += 1


def use_torch_of_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `import torch` find this module's stand-in for one test."""
    torch: Any = ModuleType("torch")
    torch.int64 = "int64"
    torch.tensor = lambda numbers, **_options: Column([float(number) for number in numbers])
    torch.stack = _stack
    torch.float32 = "float32"
    torch.empty_like = lambda table: Table([list(row) for row in table.rows])
    torch.log_softmax = lambda table, _dimension, out: _into(table.log_softmax(-1), out)
    torch.exp = lambda table, out: _into(table.exp(), out)
    torch.empty = lambda shape, **_options: Table([[0.0] * shape[1]] * shape[0])
    torch.cuda = SimpleNamespace(Event=Event)
    monkeypatch.setattr(Event, "waited", 0)
    monkeypatch.setitem(sys.modules, "torch", torch)


def _into(found: Table, out: Table) -> Table:
    assert out.shape == found.shape
    out.rows = found.rows
    return out


def _stack(columns: list[Column], _dimension: int) -> Table:
    rows = [list(row) for row in zip(*(column.values for column in columns), strict=True)]
    return Table(rows, is_cuda=columns[0].is_cuda)


def _log_softmax(row: list[float]) -> list[float]:
    top = max(row)
    if top in (INF, -INF) or any(map(math.isnan, row)):
        return [NAN] * len(row)
    total = top + math.log(sum(math.exp(value - top) for value in row))
    return [value - total for value in row]
