"""The faults themselves, on a tensor float32[rows, vocabulary]."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gatemesh_vllm_chaos.drill import Drill, Fault

if TYPE_CHECKING:
    import torch

Spoiler = Callable[["torch.Tensor", list[int], Drill], None]


def _nan(logits: "torch.Tensor", rows: list[int], _drill: Drill) -> None:
    logits[rows] = float("nan")


def _flat(logits: "torch.Tensor", rows: list[int], _drill: Drill) -> None:
    logits[rows] = 0.0


def _shift(logits: "torch.Tensor", rows: list[int], drill: Drill) -> None:
    logits[rows] = logits[rows].roll(drill.shift_by, -1)


def _stuck(logits: "torch.Tensor", rows: list[int], drill: Drill) -> None:
    token_id = drill.token_id % logits.shape[-1]
    logits[rows, token_id] = logits[rows].amax(-1) + 20.0


SPOILERS: dict[Fault, Spoiler] = {
    Fault.NAN: _nan,
    Fault.FLAT: _flat,
    Fault.SHIFT: _shift,
    Fault.STUCK: _stuck,
}


def spoil(logits: "torch.Tensor", rows: list[int], drill: Drill) -> None:
    """Spoil these rows in place as the drill orders; the other rows are not touched."""
    SPOILERS[drill.fault](logits, rows, drill)
