"""Which rows a drill hits, while the engine moves requests about."""

from collections.abc import Iterable
from random import Random

import pytest

from gatemesh_vllm_chaos.drill import Drill, Fault
from gatemesh_vllm_chaos.victims import Batch

ALL = Drill(Fault.NAN, 2)


@pytest.fixture
def batch() -> Batch:
    """An empty batch with a known dice."""
    return Batch(Random(1))


def hit(batch: Batch, drill: Drill = ALL, slots: Iterable[int] = range(4)) -> list[int]:
    """The rows that are hit in one step."""
    return batch.due_rows(drill, slots)


def test_only_rows_with_a_request_are_hit(batch: Batch) -> None:
    """Padding rows are nobody's."""
    batch.add(0, [])
    batch.add(2, [])
    assert hit(batch) == [0, 2]


def test_a_removed_request_is_gone(batch: Batch) -> None:
    """Removing twice is harmless."""
    batch.add(0, [])
    batch.remove(0)
    batch.remove(0)
    assert hit(batch) == []


def test_a_move_takes_the_luck_along(batch: Batch) -> None:
    """A request is spoiled or spared for its whole life, whatever its row."""
    batch.add(0, [1, 2, 3])
    batch.add(1, [])
    batch.move(0, 1, swap=False)
    assert hit(batch, Drill(Fault.NAN, 2, after_tokens=3)) == [1]
    assert hit(batch) == [1]


def test_a_swap_exchanges_two(batch: Batch) -> None:
    """Both keep what they are."""
    batch.add(0, [1, 2, 3])
    batch.add(1, [])
    batch.move(0, 1, swap=True)
    assert hit(batch, Drill(Fault.NAN, 2, after_tokens=3)) == [1]
    assert hit(batch) == [0, 1]


def test_tokens_that_stay_good_are_counted_live(batch: Batch) -> None:
    """The engine appends to the list that it handed over."""
    output: list[int] = []
    drill = Drill(Fault.NAN, 2, after_tokens=2)
    batch.add(0, output)
    assert hit(batch, drill) == []
    output.extend([5, 6])
    assert hit(batch, drill) == [0]


def test_calls_are_counted_where_no_list_is_shown(batch: Batch) -> None:
    """The second interface hands over no tokens."""
    drill = Drill(Fault.NAN, 2, after_tokens=2)
    batch.add(7, None)
    assert [hit(batch, drill, [7]) for _ in range(3)] == [[], [], [0]]


@pytest.mark.parametrize(("probability", "low", "high"), [(0.0, 0, 0), (1.0, 400, 400)])
def test_the_ends_of_the_probability_are_exact(
    batch: Batch, probability: float, low: int, high: int
) -> None:
    """Nobody or everybody."""
    for row in range(400):
        batch.add(row, [])
    assert low <= len(hit(batch, Drill(Fault.NAN, 2, probability), range(400))) <= high


def test_probability_is_a_share_of_requests(batch: Batch) -> None:
    """Drawn once per request: the same ones are hit in the next step."""
    for row in range(400):
        batch.add(row, [])
    drill = Drill(Fault.NAN, 2, 0.25)
    first = hit(batch, drill, range(400))
    assert 60 < len(first) < 140
    assert hit(batch, drill, range(400)) == first
