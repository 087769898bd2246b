"""One transaction for many messages: whoever submits waits for the commit that held his."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from gatemesh_common.consuming import retry_passing_faults
from gatemesh_common.errors import GatemeshError

log = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")


class Batcher(Generic[ItemT]):
    """Collects what is submitted meanwhile, and applies it in one go.

    A batch that is refused is applied item by item, so that only the guilty one fails.
    """

    def __init__(
        self,
        apply: Callable[[Sequence[ItemT]], Awaitable[None]],
        *,
        largest: int = 200,
        linger_s: float = 0.002,
    ) -> None:
        self._apply = apply
        self._largest = largest
        self._linger_s = linger_s
        self._waiting: asyncio.Queue[tuple[ItemT, asyncio.Future[None]]] = asyncio.Queue()

    async def submit(self, item: ItemT) -> None:
        """Return once the item is committed; raises what its application raised."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((item, done))
        await done

    async def run(self) -> None:
        """Apply batches until cancelled."""
        while True:
            batch = await self._collect()
            try:
                await self._settle(batch)
            finally:
                for _, done in batch:
                    done.cancel()

    async def _collect(self) -> list[tuple[ItemT, asyncio.Future[None]]]:
        batch = [await self._waiting.get()]
        if self._waiting.qsize() + 1 < self._largest:
            await asyncio.sleep(self._linger_s)
        while self._waiting.qsize() and len(batch) < self._largest:
            batch.append(self._waiting.get_nowait())
        return batch

    async def _settle(self, batch: list[tuple[ItemT, asyncio.Future[None]]]) -> None:
        try:
            await self._commit([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 (handed to whoever submitted the item)
            if len(batch) > 1:
                log.warning("batch_refused", extra={"size": len(batch), "reason": describe(error)})
                for pair in batch:
                    await self._settle([pair])
            else:
                _finish(batch[0][1], error)
        else:
            for _, done in batch:
                _finish(done, None)

    async def _commit(self, items: list[ItemT]) -> None:
        await retry_passing_faults(lambda: self._apply(items))


def _finish(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def describe(error: Exception) -> str:
    """Name an error for the log, without data."""
    return str(error) if isinstance(error, GatemeshError) else type(error).__name__
