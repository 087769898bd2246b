"""The logits processor that takes the figures; serves both of vLLM's interfaces."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor.interface import LogitsProcessor as FirstInterface
from vllm.v1.sample.logits_processor.interface import MoveDirectionality

from gatemesh_vllm_plugin.measuring import Measuring
from gatemesh_vllm_plugin.settings import InvalidSettingError, PluginSettings, read_settings
from gatemesh_vllm_plugin.sink import Sink, writer_to
from gatemesh_vllm_plugin.slots import first_rows, has_draft_rows, rows_after, rows_of_step
from gatemesh_vllm_plugin.watched import DueRow, WatchedBatch, probe_id_of

if TYPE_CHECKING:
    import torch
    from vllm.sampling_params import SamplingParams
    from vllm.v1.sample.logits_processor.interface import BatchUpdate
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsContext

try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import (
        LogitsProcessor as SecondInterface,
    )
except ImportError:
    # Engines without the second model runner know only the first interface.
    class SecondInterface:  # type: ignore[no-redef]
        """Stands in for the interface that this engine does not have."""


log = logging.getLogger(__name__)

FIRST_INTERFACE_ARGUMENTS = 3


class FiguresLogitsProcessor(FirstInterface, SecondInterface):  # type: ignore[misc]
    """Measures the logits of watched requests and never changes them.

    Anything that goes wrong switches it off, with one log line: the engine goes on.
    """

    def __init__(self, *engine_arguments: Any) -> None:
        settings = _settings_or_none(os.environ)
        self._is_on = settings is not None
        self._batch = WatchedBatch(settings.every if settings else 1)
        self._sink = Sink(writer_to(settings.targets if settings else ()))
        self._measuring = Measuring(self._sink.put, time.time)
        self._prompt_lengths: Any = None
        if self._is_on and len(engine_arguments) < FIRST_INTERFACE_ARGUMENTS:
            self._prompt_lengths = prompt_lengths_of(engine_arguments[-1])

    def is_argmax_invariant(self) -> bool:
        """False while it measures (an invariant one is skipped in greedy batches), else True."""
        return not self._is_on

    def update_state(self, batch_update: "BatchUpdate | None") -> None:
        """Follow the batch (first interface)."""
        if self._is_on and batch_update is not None:
            self._guarded(lambda: self._follow(batch_update))

    def add_request(self, slot: int, params: "SamplingParams") -> bool:
        """Follow the batch (second interface); False spares the engine a copy of the logits."""
        if not self._is_on:
            return False
        return bool(self._guarded(lambda: self._add(slot, params, None)))

    def apply(self, logits: "torch.Tensor", ctx: "LogitsContext | None" = None) -> "torch.Tensor":
        """Measure the rows that are due; called by both interfaces once per step."""
        if self._is_on:
            self._guarded(lambda: self._record(logits, ctx))
        return logits

    def _follow(self, update: "BatchUpdate") -> None:
        for row in update.removed:
            self._batch.remove(row)
        for row, params, _prompt_ids, output_ids in update.added:
            self._add(row, params, output_ids)
        for source, target, direction in update.moved:
            self._batch.move(source, target, swap=direction is MoveDirectionality.SWAP)

    def _add(self, row: int, params: "SamplingParams", output_ids: list[int] | None) -> bool:
        return self._batch.add(row, probe_id_of(params.extra_args), output_ids)

    def _record(self, logits: "torch.Tensor", ctx: "LogitsContext | None") -> None:
        due = self._due_rows(logits.shape[0]) if ctx is None else self._due_slots(logits, ctx)
        if due:
            self._measuring.take(logits, due)

    def _due_rows(self, row_count: int) -> list[DueRow]:
        held = self._measuring.held_rows
        tokens = {row: row.request.token_at(row.name.step) for row in held}
        known = {row: token for row, token in tokens.items() if token is not None}
        self._measuring.settle(known)
        return self._batch.due_rows(range(row_count))

    def _due_slots(self, logits: "torch.Tensor", ctx: "LogitsContext") -> list[DueRow]:
        if has_draft_rows(ctx, logits.shape[0]):
            # Which row is whose is known on the device only; drafted tokens may never be taken.
            self._measuring.settle({})
            return self._batch.due_rows(first_rows(ctx.expanded_idx_mapping.tolist()))
        rows = rows_of_step(ctx, self._prompt_lengths)
        settled = rows_after(self._measuring.held_rows, rows, self._batch)
        self._measuring.settle_by_row(settled, ctx.input_ids)
        return self._batch.due_rows(rows.slots, rows.steps)

    def _guarded(self, action: Callable[[], object]) -> object:
        try:
            return action()
        except Exception:
            # The border to someone else's serving loop: nothing of ours may stop it.
            self._is_on = False
            log.exception("figures_switched_off")
            return None


def _settings_or_none(environment: Mapping[str, str]) -> PluginSettings | None:
    try:
        return read_settings(environment)
    except InvalidSettingError:
        log.exception("figures_switched_off")
        return None


def prompt_lengths_of(states: Any) -> Any:
    """Return the engine's array int[slots] of prompt lengths; None where it has no such array."""
    lengths = getattr(states, "prompt_len", None)
    return getattr(lengths, "np", None)
