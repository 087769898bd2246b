"""Takes figures of due rows, and a step later looks up which tokens they took."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gatemesh_vllm_plugin.device import (
    Fetch,
    HostBuffers,
    fetch,
    index_of,
    softmax_on_device,
)
from gatemesh_vllm_plugin.figures import choice_of, figures_of, look_up, measure
from gatemesh_vllm_plugin.lines import choice_line, figures_line
from gatemesh_vllm_plugin.watched import DueRow, StepName

if TYPE_CHECKING:
    import torch

ROWS_AT_ONCE = 64
"""Bounds the memory that one measurement takes beside the engine's own."""
ROWS_HELD = 16
"""Distributions kept for one step; of further rows only the figures are told."""

Job = Callable[[], list[bytes]]
"""Makes lines; called off the engine's thread, since it may wait for the device."""


@dataclass(frozen=True)
class Held:
    """Distributions whose tokens are not taken yet."""

    logprobs: "torch.Tensor"
    """float32[rows, vocabulary], nats."""
    rows: Sequence[DueRow]


class Measuring:
    """Measures rows of the engine's steps; hands out jobs that make lines of them."""

    def __init__(self, put: Callable[[Job], None], clock: Callable[[], float]) -> None:
        self._put = put
        self._clock = clock
        self._held: list[Held] = []
        self._buffers = HostBuffers()

    def take(self, logits: "torch.Tensor", due: Sequence[DueRow]) -> None:
        """Measure these rows of this step."""
        room = ROWS_HELD
        for part in parts(due, ROWS_AT_ONCE if logits.is_cuda else 1):
            rows = rows_of(logits, [row.row for row in part]).float()
            softmax = softmax_on_device if logits.is_cuda else self._buffers.softmax
            found = measure(rows, *softmax(rows))
            names = [row.name for row in part]
            self._put(partial(told, names, fetch(found.columns), logits.shape[-1], self._clock()))
            self._hold(Held(found.logprobs, part[: max(room, 0)]))
            room -= len(part)

    def _hold(self, held: Held) -> None:
        if held.rows:
            self._held.append(held)
        else:
            self._release(held)

    def _release(self, held: Held) -> None:
        if not held.logprobs.is_cuda:
            self._buffers.give_back(held.logprobs)

    @property
    def held_rows(self) -> list[DueRow]:
        """The rows of the step before that wait for their tokens."""
        return [row for held in self._held for row in held.rows]

    def settle(self, tokens: Mapping[DueRow, int]) -> None:
        """Look up the tokens that the host knows; what is not among them stays untold."""
        for held in self._take_held():
            known = [at for at, row in enumerate(held.rows) if row in tokens]
            if known:
                chosen = [tokens[held.rows[at]] for at in known]
                self._look_up(held, known, index_of(chosen, held.logprobs))
            self._release(held)

    def settle_by_row(self, rows: Mapping[DueRow, int], input_ids: "torch.Tensor") -> None:
        """Look up tokens on the device: `rows` says where in `input_ids` each of them stands."""
        for held in self._take_held():
            known = [at for at, row in enumerate(held.rows) if row in rows]
            if known:
                where = index_of([rows[held.rows[at]] for at in known], held.logprobs)
                self._look_up(held, known, input_ids.index_select(0, where).long())
            self._release(held)

    def _take_held(self) -> list[Held]:
        held, self._held = self._held, []
        return held

    def _look_up(self, held: Held, known: Sequence[int], tokens: "torch.Tensor") -> None:
        columns = look_up(rows_of(held.logprobs, known), tokens)
        names = [held.rows[at].name for at in known]
        self._put(partial(told_choices, names, fetch(columns)))


def parts(due: Sequence[DueRow], size: int) -> Iterator[Sequence[DueRow]]:
    """Cut the rows into parts of at most that many."""
    return (due[at : at + size] for at in range(0, len(due), size))


def rows_of(table: "torch.Tensor", rows: Sequence[int]) -> "torch.Tensor":
    """Return these rows; no copy where they are all of the table, or one."""
    if list(rows) == list(range(table.shape[0])):
        return table
    if len(rows) == 1:
        return table[rows[0] : rows[0] + 1]
    return table.index_select(0, index_of(rows, table))


def told(names: Sequence[StepName], fetched: Fetch, vocab_size: int, at: float) -> list[bytes]:
    """Return the lines of measured steps."""
    return [
        figures_line(name, figures_of(row), vocab_size, at)
        for name, row in zip(names, fetched(), strict=True)
    ]


def told_choices(names: Sequence[StepName], fetched: Fetch) -> list[bytes]:
    """Return the lines of the tokens that were taken."""
    return [choice_line(name, choice_of(row)) for name, row in zip(names, fetched(), strict=True)]
