"""Follows the pool's routing table: applies it, keeps it on disk, and says so to the executor."""

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path

from aio_pika.exceptions import AMQPError
from pydantic import ValidationError

from gatemesh_agent.broadcasts import follow
from gatemesh_agent.metrics import IN_ROTATION, ROUTING_VERSION
from gatemesh_agent.routing import PoolView, Router, view_of
from gatemesh_agent.routing_store import save_table
from gatemesh_common.clock import Clock
from gatemesh_common.errors import GatemeshError
from gatemesh_common.invalid import places_in
from gatemesh_common.messages import RoutingApplied, RoutingTable, key_segment
from gatemesh_common.publisher import Publisher, whole_connection

log = logging.getLogger(__name__)

SILENCE_S = 15.0
"""The manager repeats the table every 2 s; after so long a silence the queue is made anew."""

RECONNECT_S = 1.0


class RoutingFeed:
    """Keeps the router on the newest table of its pool."""

    def __init__(
        self,
        *,
        agent_id: str,
        pool: str,
        router: Router,
        publisher: Publisher,
        clock: Clock,
        store: Path,
        on_view: Callable[[PoolView], None],
        only: Collection[str] = (),
    ) -> None:
        self._agent_id = agent_id
        self._pool = pool
        self._router = router
        self._publisher = publisher
        self._clock = clock
        self._store = store
        self._on_view = on_view
        self._only = only

    async def run(self, amqp_url: str) -> None:
        """Follow the table until cancelled; a broker that is away is waited for."""
        key = f"{RoutingTable.routing_key}.{key_segment(self._pool)}"
        while True:
            try:
                async with whole_connection():
                    await follow(amqp_url, key, SILENCE_S, self.receive)
            except (AMQPError, OSError, RuntimeError, TimeoutError) as error:
                extra = {"error": type(error).__name__, "version": self._router.view.version}
                log.warning("routing_feed_away", extra=extra)
            await asyncio.sleep(RECONNECT_S)

    async def receive(self, body: bytes) -> None:
        """Take in one message; a table that cannot be read changes nothing."""
        try:
            table = RoutingTable.model_validate_json(body)
        except ValidationError as error:
            log.error("routing_table_refused", extra={"fields": places_in(error)})  # noqa: TRY400
            return
        if table.pool == self._pool:
            # One from the future could never be replaced by a lower version.
            stamped = min(table.timestamp, self._clock())
            self.apply(table.model_copy(update={"timestamp": stamped}))
            # Also for a repeated table: what a follower could not finish, it takes up again.
            self._on_view(self._router.view)
            await self._confirm()

    def apply(self, table: RoutingTable) -> None:
        """Route by a table from now on, unless the present one is newer."""
        before = self._router.view.version
        if not self._router.replace(view_of(table, self._only)):
            return
        save_table(self._store, table)
        extra = {"pool": self._pool, "version": table.version, "before": before}
        log.info("routing_table_applied", extra=extra)
        self.announce()

    def announce(self) -> None:
        """Show the present view in the metrics."""
        view = self._router.view
        ROUTING_VERSION.set(view.version)
        IN_ROTATION.set(len(view.in_rotation()))

    async def _confirm(self) -> None:
        applied = RoutingApplied(
            timestamp=self._clock(),
            agent_id=self._agent_id,
            pool=self._pool,
            version=self._router.view.version,
        )
        try:
            await self._publisher.publish(applied)
        except GatemeshError as error:
            # The manager repeats the table, so the next confirmation is 2 s away.
            log.warning("routing_not_confirmed", extra={"error": str(error)})
