"""Exact figures of whole distributions, on a tensor float32[rows, vocabulary]."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SMALLEST = 1e-38
"""Below every probability that matters; keeps the logarithm of a masked token finite."""


@dataclass(frozen=True)
class Figures:
    """What one step's distribution looked like, before penalties and temperature."""

    entropy_nats: float
    top1_p: float
    nan_count: int
    pos_inf_count: int
    neg_inf_count: int
    """Masked tokens included: a grammar or a list of allowed tokens writes -inf."""


def measure(logits: "torch.Tensor", rows: Sequence[int]) -> list[Figures]:
    """Return the figures of these rows, in their order; NaN where a row's logits give none."""
    chosen = logits if len(rows) == logits.shape[0] else logits[list(rows)]
    p = chosen.softmax(-1)
    columns = (
        -(p * p.clamp_min(SMALLEST).log()).sum(-1),
        p.amax(-1),
        chosen.isnan().sum(-1),
        chosen.isposinf().sum(-1),
        chosen.isneginf().sum(-1),
    )
    entropy, top1, nan, pos_inf, neg_inf = (column.tolist() for column in columns)
    return [Figures(*row) for row in zip(entropy, top1, nan, pos_inf, neg_inf, strict=True)]
