"""The life of the engine: who runs, who waits, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from gatemesh_engine_sim.errors import draining, engine_dead, queue_full


class Engine:
    """Admits requests up to its limits and ends them all when it dies."""

    def __init__(self, *, max_running: int, max_waiting: int | None) -> None:
        self._slots = asyncio.Semaphore(max_running)
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._ended = asyncio.Event()

    @property
    def running(self) -> int:
        """Requests that have a slot."""
        return len(self._tasks) - self._waiting

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return self._waiting

    @property
    def capacity(self) -> int:
        """Requests that can run at once."""
        return self._max_running

    @property
    def is_dead(self) -> bool:
        """True once no answer will ever come."""
        return self._ended.is_set()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a place in the batch.

        Raises:
            ApiError: the engine drains, is dead, or its queue is full.
        """
        self._admit()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a handler always runs in a task
        self._tasks.add(task)
        self._idle.clear()
        try:
            await self._enter()
            try:
                yield
            finally:
                self._slots.release()
        except asyncio.CancelledError:
            if not self.is_dead:
                raise
            task.uncancel()
            raise engine_dead() from None
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._idle.set()

    def _admit(self) -> None:
        if self._draining:
            raise draining()
        if self.is_dead:
            raise engine_dead()
        is_full = self._max_waiting is not None and self._waiting >= self._max_waiting
        if is_full and self._slots.locked():
            raise queue_full(self._waiting)

    async def _enter(self) -> None:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1

    async def drain(self, grace_s: float) -> None:
        """Refuse new requests, let the running ones end within the grace, then die."""
        self._draining = True
        try:
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        except TimeoutError:
            pass
        self.die()
        await self._idle.wait()

    def die(self) -> None:
        """End every request with the engine's error."""
        self._ended.set()
        for task in list(self._tasks):
            task.cancel()

    async def wait_ended(self) -> None:
        """Return when the engine is dead."""
        await self._ended.wait()
