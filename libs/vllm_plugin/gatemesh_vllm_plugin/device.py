"""Between host and device without waiting: small indices in, small tables out."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LOWEST = -80.0
"""Log probability under which a token adds nothing; keeps masked tokens finite."""

Fetch = Callable[[], list[list[float]]]
"""Returns the rows of a table; may wait for the device, so it is called off the engine's thread."""


class HostBuffers:
    """Tables of one row, used again and again: fresh memory costs more than the arithmetic."""

    def __init__(self) -> None:
        self._free: list[torch.Tensor] = []
        self._shares: torch.Tensor | None = None

    def softmax(self, logits: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
        """Return log probabilities, until they are given back, and probabilities, until the next.

        `logits`: float32[1, vocabulary] on the host.
        """
        import torch  # noqa: PLC0415

        if self._shares is None or self._shares.shape != logits.shape:
            self._free, self._shares = [], torch.empty(logits.shape, dtype=torch.float32)
        table = self._free.pop() if self._free else torch.empty_like(self._shares)
        logprobs = torch.log_softmax(logits, -1, out=table).clamp_min_(LOWEST)
        return logprobs, torch.exp(logprobs, out=self._shares)

    def give_back(self, logprobs: "torch.Tensor") -> None:
        """Take a table back that nobody reads any more."""
        if self._shares is not None and logprobs.shape == self._shares.shape:
            self._free.append(logprobs)


def softmax_on_device(logits: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """Return log probabilities and probabilities; the device's allocator keeps its memory."""
    logprobs = logits.log_softmax(-1).clamp_min_(LOWEST)
    return logprobs, logprobs.exp()


def index_of(numbers: Sequence[int], like: "torch.Tensor") -> "torch.Tensor":
    """Return these numbers as an index on the device of `like`; never waits for it."""
    import torch  # noqa: PLC0415 - the engine has it; reading our settings must not need it

    if not like.is_cuda:
        return torch.tensor(numbers, dtype=torch.int64)
    index = torch.tensor(numbers, dtype=torch.int64, pin_memory=True)
    return index.to(like.device, non_blocking=True)


def fetch(columns: Sequence["torch.Tensor"]) -> Fetch:
    """Begin to bring columns to the host as one table; the result is taken later."""
    import torch  # noqa: PLC0415

    table = torch.stack([column.float() for column in columns], 1)
    if not table.is_cuda:
        rows: list[list[float]] = table.tolist()
        return lambda: rows
    landing = torch.empty(table.shape, dtype=table.dtype, pin_memory=True)
    landing.copy_(table, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record()

    def wait() -> list[list[float]]:
        # Blocks this thread only: the interpreter is free meanwhile.
        arrived.synchronize()
        landed: list[list[float]] = landing.tolist()
        return landed

    return wait
