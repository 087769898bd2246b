"""Which rows are measured, while the engine moves requests about."""

from typing import Any

import pytest

from gatemesh_vllm_plugin.watched import DueRow, WatchedBatch, probe_id_of


def test_only_requests_with_a_probe_id_are_due() -> None:
    """Nobody else is measured."""
    batch = WatchedBatch(every=1)
    assert not batch.add(0, None, [])
    assert batch.add(1, "p", [])
    assert batch.due_rows(range(2)) == [DueRow(1, "p", 0)]


def test_every_nth_step_of_each_answer_is_due() -> None:
    """Counted per answer, from its first token on."""
    batch = WatchedBatch(every=3)
    output: list[int] = []
    batch.add(0, "p", output)
    steps = []
    for token in range(7):
        steps += [due.step for due in batch.due_rows(range(1))]
        output.append(token)
    assert steps == [0, 3, 6]


def test_calls_are_counted_where_no_list_is_shown() -> None:
    """The second interface hands over no tokens."""
    batch = WatchedBatch(every=2)
    batch.add(9, "p", None)
    assert [len(batch.due_rows([9])) for _ in range(4)] == [1, 0, 1, 0]


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
    [(False, [DueRow(1, "a", 0)]), (True, [DueRow(0, "b", 0), DueRow(1, "a", 0)])],
)
def test_moves_are_followed(expected: list[DueRow], *, swap: bool) -> None:
    """One way overwrites the target, a swap keeps both."""
    batch = WatchedBatch(every=1)
    batch.add(0, "a", [])
    batch.add(1, "b", [])
    batch.move(0, 1, swap=swap)
    assert batch.due_rows(range(2)) == expected


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
