"""How one manager reads verdicts: proofs, the queue of all, and its share of the shards."""

import asyncio
from collections.abc import Callable
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.broker import PROOFS, VERDICTS, bind_proofs
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import first_to_end, with_broker
from gatemesh_health_manager.intake import Intake, Reader
from gatemesh_health_manager.lanes import USUAL_BATCH
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.shards import Shards, declare_shards
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_leases import DatabaseLeases

PROOF_PREFETCH = 2 * USUAL_BATCH
"""A batch and the next: what more of a storm waits, another manager may take."""


class VerdictReading:
    """Reads verdicts, each once whichever queue it came by; proofs beside all the others."""

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
        if queue == PROOFS.name:
            prefetch = min(prefetch, PROOF_PREFETCH)
        return Intake(self._settings.amqp_url, queue, self._apply, self._publisher, prefetch)

    async def run(self, reading: Callable[[str], None]) -> None:
        """Read until cancelled, or until the queue of proofs or that of all the others is gone.

        `reading` is told "proofs" or "verdicts" each time these are read.
        """
        count = await with_broker(self._declare)
        readers = [
            Reader(self.intake(PROOFS.name), partial(reading, "proofs")),
            Reader(self.intake(VERDICTS.name), partial(reading, "verdicts")),
        ]
        shards = [self._read_shards(count)] if count else []
        try:
            await first_to_end(*(asyncio.shield(one.task) for one in readers), *shards)
        finally:
            await asyncio.gather(*(one.end() for one in readers))

    async def _declare(self) -> int:
        count = await declare_shards(self._settings.amqp_url, self._settings.verdict_shards)
        # Only now: who comes to read them is here.
        async with self._publisher.fresh_channel() as channel:
            await bind_proofs(channel)
        return count

    async def _read_shards(self, count: int) -> None:
        async with DatabaseLeases(self._engine) as leases:
            await Shards(leases, self.intake, count, partial(with_broker, self._declare)).run()
