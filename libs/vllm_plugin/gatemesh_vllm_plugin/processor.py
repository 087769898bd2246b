"""The logits processor that takes the figures; serves both of vLLM's interfaces."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor.interface import LogitsProcessor as FirstInterface
from vllm.v1.sample.logits_processor.interface import MoveDirectionality

from gatemesh_vllm_plugin.figures import measure
from gatemesh_vllm_plugin.settings import InvalidSettingError, PluginSettings, read_settings
from gatemesh_vllm_plugin.sink import Sink, append_to, line_of, send_to
from gatemesh_vllm_plugin.watched import WatchedBatch, probe_id_of

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
        self._counts_calls = len(engine_arguments) < FIRST_INTERFACE_ARGUMENTS
        settings = _settings_or_none(os.environ)
        self._is_on = settings is not None
        self._batch = WatchedBatch(settings.every if settings else 1)
        self._sink = _open_sink(settings) if settings else None

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
        known = None if self._counts_calls else output_ids
        return self._batch.add(row, probe_id_of(params.extra_args), known)

    def _record(self, logits: "torch.Tensor", ctx: "LogitsContext | None") -> None:
        slots = ctx.expanded_idx_mapping.tolist() if ctx else range(logits.shape[0])
        due = self._batch.due_rows(slots)
        if not due or self._sink is None:
            return
        now = time.time()
        for row, figures in zip(due, measure(logits, [row.row for row in due]), strict=True):
            self._sink.put(line_of(row, figures, now))

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


def _open_sink(settings: PluginSettings) -> Sink:
    write = send_to(settings.target) if settings.is_socket else append_to(settings.target)
    return Sink(write)
