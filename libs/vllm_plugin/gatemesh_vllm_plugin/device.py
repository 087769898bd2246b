"""Between host and device without waiting: small indices in, small tables out."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Fetch = Callable[[], list[list[float]]]
"""Returns the rows of a table; may wait for the device, so it is called off the engine's thread."""


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
