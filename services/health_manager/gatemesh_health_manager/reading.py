"""How one manager reads verdicts: the queue of all, and its share of the shards."""

import asyncio
from collections.abc import Callable
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.broker import VERDICTS
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import first_to_end, with_broker
from gatemesh_health_manager.intake import Intake, Reader
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.shards import Shards, declare_shards
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_leases import DatabaseLeases


class VerdictReading:
    """Reads verdicts, each once whichever queue it came by."""

    def __init__(
        self,
        settings: HealthManagerSettings,
        store: Store,
        publisher: Publisher,
        engine: AsyncEngine,
    ) -> None:
        self._settings = settings
        # One name for all queues: a verdict that changes its shard is still seen once.
        self._apply = partial(store.apply_verdicts, VERDICTS.name)
        self._publisher = publisher
        self._engine = engine

    def intake(self, queue: str) -> Intake:
        """Return the intake of a queue."""
        prefetch = self._settings.verdict_prefetch
        return Intake(self._settings.amqp_url, queue, self._apply, self._publisher, prefetch)

    async def run(self, reading: Callable[[], None]) -> None:
        """Read until cancelled, or until the queue of all verdicts is gone."""
        count = await with_broker(self._declare)
        rest = Reader(self.intake(VERDICTS.name), reading)
        try:
            if count:
                await first_to_end(asyncio.shield(rest.task), self._read_shards(count))
            else:
                await asyncio.shield(rest.task)
        finally:
            await rest.end()

    async def _declare(self) -> int:
        return await declare_shards(self._settings.amqp_url, self._settings.verdict_shards)

    async def _read_shards(self, count: int) -> None:
        async with DatabaseLeases(self._engine) as leases:
            await Shards(leases, self.intake, count, partial(with_broker, self._declare)).run()
