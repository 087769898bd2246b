"""Exact figures of whole distributions, on tensors float32[rows, vocabulary]; one softmax each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Figures:
    """What one step's distribution looked like, before penalties and temperature."""

    entropy_nats: float
    top1_p: float
    variance: float
    """Of the surprisal, nats squared."""
    nan_count: int = 0
    pos_inf_count: int = 0


@dataclass(frozen=True)
class Choice:
    """Which token a step took, seen in the distribution of that step."""

    chosen_logprob: float
    rank: int
    """0 for the likeliest token."""


class Measured(NamedTuple):
    """Some rows of one step, still on their device."""

    logprobs: "torch.Tensor"
    """float32[rows, vocabulary], nats; a copy that nobody changes."""
    columns: tuple["torch.Tensor", ...]
    """Entropy, top log probability, mean square; NaN and +inf counts where they were counted."""


def measure(logits: "torch.Tensor", logprobs: "torch.Tensor", shares: "torch.Tensor") -> Measured:
    """Measure every row, given its log probabilities and probabilities; `shares` is used up.

    NaN where a row's logits give nothing. A row that holds NaN or +inf has no finite softmax, so
    rows need no count while all is well. On a GPU they are counted always: to look first would
    mean to wait for it.
    """
    entropy = -shares.mul_(logprobs).sum(-1)
    square = shares.mul_(logprobs).sum(-1)
    columns: tuple[torch.Tensor, ...] = (entropy, logprobs.amax(-1), square)
    if logits.is_cuda or entropy.isnan().any():
        columns += (logits.isnan().sum(-1), logits.isposinf().sum(-1))
    return Measured(logprobs, columns)


def figures_of(row: Sequence[float]) -> Figures:
    """Read one row of the columns."""
    entropy, top, square, *counts = row
    variance = max(square - entropy * entropy, 0.0) if math.isfinite(square) else math.nan
    top1_p = math.exp(top) if math.isfinite(top) else math.nan
    return Figures(entropy, top1_p, variance, *map(int, counts))


def look_up(logprobs: "torch.Tensor", tokens: "torch.Tensor") -> tuple["torch.Tensor", ...]:
    """Return log probability and rank of one token per row; both are columns."""
    chosen = logprobs.gather(1, tokens.unsqueeze(1))
    column = chosen.squeeze(1)
    if not logprobs.is_cuda and (column >= logprobs.amax(-1)).all():
        # On the host a look is cheap, and counting is not.
        return column, column.new_zeros(column.shape)
    return column, (logprobs > chosen).sum(-1)


def choice_of(row: Sequence[float]) -> Choice:
    """Read one row of what was looked up."""
    return Choice(float(row[0]), int(row[1]))
