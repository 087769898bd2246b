"""Which rows are measured, while the engine moves requests about."""

from typing import Any

import pytest

from gatemesh_vllm_plugin.watched import StepName, WatchedBatch, WatchedRequest, probe_id_of


def due(batch: WatchedBatch, *slots: int) -> list[tuple[int, str, int]]:
    """Row, probe id and step of each due row."""
    return [(row.row, *row.name) for row in batch.due_rows(slots)]


def test_only_requests_with_a_probe_id_are_due() -> None:
    """Nobody else is measured."""
    batch = WatchedBatch(every=1)
    assert not batch.add(0, None, [])
    assert batch.add(1, "p", [])
    assert due(batch, 0, 1) == [(1, "p", 0)]


def test_every_nth_step_of_each_answer_is_due() -> None:
    """Counted per answer, from its first token on."""
    batch = WatchedBatch(every=3)
    output: list[int] = []
    batch.add(0, "p", output)
    steps = []
    for token in range(7):
        steps += [step for _row, _probe_id, step in due(batch, 0)]
        output.append(token)
    assert steps == [0, 3, 6]


def test_calls_are_counted_where_no_list_is_shown() -> None:
    """The second interface hands over no tokens."""
    batch = WatchedBatch(every=2)
    batch.add(9, "p", None)
    assert [len(batch.due_rows([9])) for _ in range(4)] == [1, 0, 1, 0]


def test_steps_that_the_engine_tells_are_taken() -> None:
    """Below 0 the prompt is still being read."""
    batch = WatchedBatch(every=2)
    batch.add(9, "p", None)
    told = [batch.due_rows([9], [step]) for step in (-4, -2, 0, 1, 2)]
    assert [rows[0].name for rows in told if rows] == [StepName("p", 0), StepName("p", 2)]


def test_the_holder_of_a_slot_is_known() -> None:
    """By identity: the same probe may come twice."""
    batch = WatchedBatch(every=1)
    batch.add(9, "p", None)
    [row] = batch.due_rows([9])
    assert batch.holds(9, row.request)
    batch.add(9, "p", None)
    assert not batch.holds(9, row.request)


@pytest.mark.parametrize(("output", "expected"), [([], None), ([5], 5), ([-1], None), (None, None)])
def test_the_token_of_a_step(output: list[int] | None, expected: int | None) -> None:
    """Not known before it is there, nor where the engine only holds its place."""
    assert WatchedRequest("p", output).token_at(0) == expected


def test_a_row_belongs_to_the_latest_request() -> None:
    """Slots are reused: also a request that nobody watches replaces the old one."""
    batch = WatchedBatch(every=1)
    batch.add(0, "old", [])
    batch.add(0, None, [])
    assert batch.due_rows(range(1)) == []


def test_a_removed_request_is_gone() -> None:
    """Removing twice is harmless."""
    batch = WatchedBatch(every=1)
    batch.add(0, "p", [])
    batch.remove(0)
    batch.remove(0)
    assert batch.due_rows(range(1)) == []


@pytest.mark.parametrize(
    ("swap", "expected"),
    [(False, [(1, "a", 0)]), (True, [(0, "b", 0), (1, "a", 0)])],
)
def test_moves_are_followed(expected: list[tuple[int, str, int]], *, swap: bool) -> None:
    """One way overwrites the target, a swap keeps both."""
    batch = WatchedBatch(every=1)
    batch.add(0, "a", [])
    batch.add(1, "b", [])
    batch.move(0, 1, swap=swap)
    assert due(batch, 0, 1) == expected


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param({"probe_id": "p"}, "p", id="given"),
        pytest.param({"probe_id": "p" * 200}, "p" * 200, id="longest"),
        pytest.param({"probe_id": "p" * 201}, None, id="too-long"),
        pytest.param({"probe_id": ""}, None, id="empty"),
        pytest.param({"probe_id": 7}, None, id="a-number"),
        pytest.param({"other": "p"}, None, id="another-key"),
        pytest.param(None, None, id="no-arguments"),
    ],
)
def test_only_usable_probe_ids_count(extra: Any, expected: str | None) -> None:
    """Clients may send anything in `vllm_xargs`."""
    assert probe_id_of(extra) == expected
