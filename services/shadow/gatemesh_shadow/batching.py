"""Gathers single items of many tasks into batches for a model in a thread of its own."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Answers items in batches: what comes while the model works waits for the next one."""

    def __init__(
        self, work: Callable[[Sequence[Item]], Sequence[Result]], most: int, wait_s: float
    ) -> None:
        self._work = work
        self._most = most
        self._wait_s = wait_s
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")

    async def submit(self, item: Item) -> Result:
        """Return the result for one item; raises what the model raised for its batch."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await future

    def close(self) -> None:
        """Let the thread end with the batch under way."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        if len(self._waiting) < self._most:
            await asyncio.sleep(self._wait_s)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        items = [item for item, _ in batch]
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, self._work, items)
        except Exception as error:  # noqa: BLE001 - the task's top: every waiter gets the error
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
