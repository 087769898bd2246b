"""Which row is whose, under the engine's second interface."""

from types import SimpleNamespace
from typing import Any

import pytest

from gatemesh_vllm_plugin.slots import (
    Rows,
    first_rows,
    has_draft_rows,
    rows_after,
    rows_of_step,
)
from gatemesh_vllm_plugin.watched import WatchedBatch


def context(slots: list[int], lengths: list[int]) -> Any:
    """The host's view of one step."""
    return SimpleNamespace(idx_mapping_np=slots, seq_lens_upper_bound_np=lengths)


def test_steps_are_counted_from_the_prompt() -> None:
    """A prompt that is read in parts lies below 0."""
    rows = rows_of_step(context([4, 1], [10, 3]), {4: 8, 1: 5})
    assert rows == Rows([4, 1], [2, -2])


def test_without_prompt_lengths_no_step_is_known() -> None:
    """The batch counts calls then."""
    assert rows_of_step(context([4], [10]), None) == Rows([4], None)


def test_drafted_tokens_have_rows_of_their_own() -> None:
    """More rows than requests."""
    assert has_draft_rows(context([4, 1], [1, 1]), 5)
    assert not has_draft_rows(context([4, 1], [1, 1]), 2)
    assert first_rows([4, 4, 1, 1, 4]) == [4, -1, 1, -1, -1]


@pytest.mark.parametrize(
    ("slots", "steps", "expected"),
    [
        pytest.param([7, 3], [0, 9], 1, id="moved"),
        pytest.param([3], [8], None, id="same-step-again"),
        pytest.param([3], None, 0, id="steps-unknown"),
        pytest.param([7], [9], None, id="not-in-this-step"),
    ],
)
def test_a_held_step_finds_its_token(
    slots: list[int], steps: list[int] | None, expected: int | None
) -> None:
    """The token that a step took is fed to the engine in the next."""
    batch = WatchedBatch(every=1)
    batch.add(3, "p", None)
    [due] = batch.due_rows([3], [8])
    found = rows_after([due], Rows(slots, steps), batch)
    assert dict(found) == ({} if expected is None else {due: expected})


def test_a_slot_with_another_request_is_not_its_own() -> None:
    """Slots are reused."""
    batch = WatchedBatch(every=1)
    batch.add(3, "old", None)
    [due] = batch.due_rows([3], [8])
    batch.add(3, "new", None)
    assert not rows_after([due], Rows([3], [9]), batch)
