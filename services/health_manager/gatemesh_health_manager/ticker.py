"""The passing of time: one manager of several looks at deadlines and repeats what agents go by."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from sqlalchemy import text
from sqlalchemy.exc import StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gatemesh_common.database import as_ours
from gatemesh_common.errors import GatemeshError
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.policy_capture import capture_terms
from gatemesh_health_manager.policy_file import PolicyFile
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_baselines import BaselineStore
from gatemesh_health_manager.store_days import DayStore
from gatemesh_health_manager.telling import tell_no_fleet, tell_tick

log = logging.getLogger(__name__)

CLEAN_EVERY_S = 600.0
REMEMBER_EVERY_S = 3600.0
"""A replay begins at such a moment."""


class Leadership:
    """A lock in the database that one of several managers holds while its connection lives."""

    def __init__(self, engine: AsyncEngine, name: str = "gatemesh.ticker") -> None:
        self._engine = engine
        self._name = name
        self._connection: AsyncConnection | None = None
        self._asking = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()

    async def held(self) -> bool:
        """Return whether this process leads now; takes the lead when it is free.

        Raises:
            DatabaseUnavailableError: the database did not answer; the lead is lost.
        """
        async with self._asking:
            try:
                return await self._try()
            except (StatementError, PoolTimeoutError) as error:
                await self._leave()
                raise as_ours(error) from error

    async def _try(self) -> bool:
        if self._connection is None:
            connection = await self._engine.connect()
            self._connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
            query = text("SELECT pg_try_advisory_lock(hashtext(:name))")
            if not (await self._connection.execute(query, {"name": self._name})).scalar():
                await self._leave()
                return False
            log.info("ticker_leads")
        await self._connection.execute(text("SELECT 1"))
        return True

    async def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # The lock belongs to the session: it must end, not go back to the pool.
            await connection.invalidate()
            await connection.close()


class Ticker:
    """Ticks, repeats and cleans while it leads; a passing fault costs one round, no more."""

    def __init__(
        self,
        store: Store,
        publisher: Publisher,
        leadership: Leadership,
        baselines: BaselineStore,
        days: DayStore,
        *,
        policy_file: PolicyFile | None = None,
        tick_s: float = 1.0,
        heartbeat_s: float = 2.0,
        baseline_s: float = 10.0,
        inbox_keep: timedelta = timedelta(hours=72),
        history_keep: timedelta = timedelta(days=30),
        verdicts_keep: timedelta = timedelta(days=90),
        captures_keep: timedelta = timedelta(days=14),
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._leadership = leadership
        self._tick_s = tick_s
        self._heartbeat_s = heartbeat_s
        self._baselines = baselines
        self._days = days
        self._policy_file = policy_file
        self._baseline_s = baseline_s
        self._inbox_keep = inbox_keep
        self._history_keep = history_keep
        self._verdicts_keep = verdicts_keep
        self._captures_keep = captures_keep

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._tick_s, self.tick))
            group.create_task(self._repeat(self._tick_s, self.follow_policy))
            group.create_task(self._repeat(self._heartbeat_s, self.beat))
            group.create_task(self._repeat(self._baseline_s, self.measure))
            group.create_task(self._repeat(self._baseline_s, self.tell_terms))
            group.create_task(self._repeat(CLEAN_EVERY_S, self.clean))
            group.create_task(self._repeat(REMEMBER_EVERY_S, self.remember))

    async def tick(self) -> None:
        """Look at every deadline once."""
        if await self._leadership.held():
            begun_s = time.perf_counter()
            await self._store.tick()
            tell_tick(time.perf_counter() - begun_s)
        else:
            tell_no_fleet()

    async def follow_policy(self) -> None:
        """Take over the rules of the policy file where they are not those in force.

        Each of several managers does, whoever leads: all of them decide.
        """
        if self._policy_file is None:
            return
        policy, before = await asyncio.to_thread(self._policy_file.look), self._store.policy
        if policy is None or policy == before:
            return
        await self._store.use_policy(policy)
        self._baselines.use_policy(policy)
        facts = {"policy_version": policy.version, "before": before.version}
        log.info("policy_taken_over", extra=facts)

    async def beat(self) -> None:
        """Repeat the routing table of every pool once."""
        if await self._leadership.held():
            for table in await self._store.routing_tables():
                await self._publisher.publish(table)

    async def measure(self) -> None:
        """Take in what healthy instances showed, and repeat every baseline once."""
        if await self._leadership.held():
            await self._baselines.settle()
            for baseline in await self._baselines.baselines():
                await self._publisher.publish(baseline)

    async def tell_terms(self) -> None:
        """Repeat on what terms captures are taken in every pool once."""
        if await self._leadership.held():
            for table in await self._store.routing_tables():
                rules = self._store.policy.for_pool(table.pool).capture
                await self._publisher.publish(capture_terms(table.pool, rules, table.timestamp))

    async def clean(self) -> None:
        """Make the days to come; forget what is past keeping, and baselines that nobody uses."""
        if not await self._leadership.held():
            return
        await self._days.prepare()
        await self._days.forget(self._verdicts_keep)
        await self._days.forget_captures(self._captures_keep)
        await self._store.forget_inbox(self._inbox_keep)
        await self._store.forget_history(self._history_keep)
        await self._baselines.forget()

    async def remember(self) -> None:
        """Keep every record as it is now, for replays."""
        if await self._leadership.held():
            await self._store.remember_fleet()

    async def _repeat(self, every_s: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await act()
            except GatemeshError as error:
                log.warning("ticker_round_failed", extra={"error": str(error)})
            except Exception:
                # What one round cannot digest must not keep the others from deciding.
                log.exception("ticker_round_failed_itself")
            await asyncio.sleep(every_s)
