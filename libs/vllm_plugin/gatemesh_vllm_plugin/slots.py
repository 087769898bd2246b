"""Where the engine's second interface shows which row is whose, and at which step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gatemesh_vllm_plugin.watched import DueRow, WatchedBatch

if TYPE_CHECKING:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsContext


@dataclass(frozen=True)
class Rows:
    """The rows of one step, known on the host without waiting for the device."""

    slots: Sequence[int]
    """Slot of each row."""
    steps: Sequence[int] | None
    """Index of the token that each row samples; below 0 while a prompt is read in parts."""


def rows_of_step(ctx: "LogitsContext", prompt_lengths: Any) -> Rows:
    """Return the rows of a step in which each request has one row.

    `prompt_lengths` is the engine's own array int[slots]; None where it shows none.
    """
    slots = [int(slot) for slot in ctx.idx_mapping_np]
    if prompt_lengths is None:
        return Rows(slots, None)
    lengths = ctx.seq_lens_upper_bound_np
    steps = [int(lengths[row]) - int(prompt_lengths[slot]) for row, slot in enumerate(slots)]
    return Rows(slots, steps)


def has_draft_rows(ctx: "LogitsContext", row_count: int) -> bool:
    """Return True under speculative decoding: a request has a row per drafted token."""
    return len(ctx.idx_mapping_np) != row_count


def first_rows(slots: Sequence[int]) -> list[int]:
    """Return each row's slot where it is the first row of its request, else -1."""
    seen: set[int] = set()
    named = []
    for slot in slots:
        named.append(-1 if slot in seen else slot)
        seen.add(slot)
    return named


def rows_after(held: Sequence[DueRow], rows: Rows, batch: WatchedBatch) -> Mapping[DueRow, int]:
    """Return for each held step the row that is fed its token now."""
    row_of = {slot: row for row, slot in enumerate(rows.slots)}
    found: dict[DueRow, int] = {}
    for due in held:
        row = row_of.get(due.slot)
        if row is None or not batch.holds(due.slot, due.request):
            continue
        if rows.steps is None or rows.steps[row] == due.name.step + 1:
            found[due] = row
    return found
