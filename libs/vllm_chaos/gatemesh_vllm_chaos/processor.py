"""The logits processor that carries out drills; serves both of vLLM's interfaces."""

import logging
import os
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor.interface import LogitsProcessor as FirstInterface
from vllm.v1.sample.logits_processor.interface import MoveDirectionality
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as SecondInterface

from gatemesh_vllm_chaos.drill import Drill
from gatemesh_vllm_chaos.drill_file import DrillFile, write_receipt
from gatemesh_vllm_chaos.faults import spoil
from gatemesh_vllm_chaos.victims import Batch

if TYPE_CHECKING:
    import torch
    from vllm.v1.sample.logits_processor.interface import BatchUpdate
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsContext

log = logging.getLogger(__name__)

FILE_VARIABLE = "GATEMESH_CHAOS_FILE"


class ChaosLogitsProcessor(FirstInterface, SecondInterface):  # type: ignore[misc]
    """Spoils logits while a drill file orders it for this life of the engine; else does nothing."""

    def __init__(self, *_engine_arguments: Any) -> None:
        path = os.environ.get(FILE_VARIABLE)
        self._path = Path(path) if path else None
        self._drills = DrillFile(self._path, os.getpgrp(), time.monotonic) if self._path else None
        self._batch = Batch(Random())  # noqa: S311
        self._answered: Drill | None = None

    def is_argmax_invariant(self) -> bool:
        """Always False: an invariant processor would be skipped in greedy batches."""
        return False

    def update_state(self, batch_update: "BatchUpdate | None") -> None:
        """Follow the batch (first interface); the order of the three steps is the engine's."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._batch.remove(row)
        for row, _params, _prompt_ids, output_ids in batch_update.added:
            self._batch.add(row, output_ids)
        for source, target, direction in batch_update.moved:
            self._batch.move(source, target, swap=direction is MoveDirectionality.SWAP)

    def add_request(self, slot: int, _params: object) -> bool:
        """Follow the batch (second interface); slots are reused, so the old holder is replaced."""
        self._batch.add(slot, None)
        return self._drills is not None

    def apply(self, logits: "torch.Tensor", ctx: "LogitsContext | None" = None) -> "torch.Tensor":
        """Spoil the rows that are due; called by both interfaces once per step."""
        drill = self._drills.current() if self._drills else None
        if drill:
            self._carry_out(drill, logits, ctx)
        return logits

    def _carry_out(self, drill: Drill, logits: "torch.Tensor", ctx: "LogitsContext | None") -> None:
        slots = ctx.expanded_idx_mapping.tolist() if ctx else range(logits.shape[0])
        rows = self._batch.due_rows(drill, slots)
        if not rows:
            return
        spoil(logits, rows, drill)
        if drill != self._answered and self._path:
            self._answered = drill
            write_receipt(self._path, drill, time.time())
            log.warning("drill_begun", extra={"fault": drill.fault, "pgid": drill.pgid})
