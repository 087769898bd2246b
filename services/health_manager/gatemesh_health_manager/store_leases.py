"""Shards leased by locks in the database; they end with the connection that holds them."""

from types import TracebackType
from typing import Any, Self

from sqlalchemy import text
from sqlalchemy.exc import StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gatemesh_common.database import as_ours

SPACE = 1_735_224_147
"""First number of every lock here; the second is the shard."""
PRESENT = -1
"""Second number of the lock that every manager shares, to be counted."""
# In the order of their processes: a place that does not change while the same ones are there.
PLACE = text("""
    SELECT count(*) FILTER (WHERE pid < pg_backend_pid()), count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = CAST(:space AS oid) AND granted
        AND objid = CAST(:present AS int)::oid AND mode = 'ShareLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())""")
APPEAR = text("SELECT pg_advisory_lock_shared(:space, :number)")
TAKE = text("SELECT pg_try_advisory_lock(:space, :number)")
GIVE_BACK = text("SELECT pg_advisory_unlock(:space, :number)")


class DatabaseLeases:
    """The leases of one manager.

    Every method raises as those of `Store` do; all leases are lost then.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._drop()

    async def place(self) -> tuple[int, int]:
        """Return the place of this manager among those that are there, and their number."""
        [(place, managers)] = await self._ask(PLACE, space=SPACE, present=PRESENT)
        return place, managers

    async def take(self, shard: int) -> bool:
        """Become the owner of a shard; False while another one is."""
        [(taken,)] = await self._ask(TAKE, space=SPACE, number=shard)
        return bool(taken)

    async def give_back(self, shard: int) -> None:
        """Leave a shard to others."""
        await self._ask(GIVE_BACK, space=SPACE, number=shard)

    async def _ask(self, query: Any, **values: int) -> list[Any]:
        try:
            if self._connection is None:
                opened = await self._engine.connect()
                self._connection = await opened.execution_options(isolation_level="AUTOCOMMIT")
                await self._connection.execute(APPEAR, {"space": SPACE, "number": PRESENT})
            return list(await self._connection.execute(query, values))
        except (StatementError, PoolTimeoutError) as error:
            await self._drop()
            raise as_ours(error) from error

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # The locks belong to the session: it must end, not go back to the pool.
            await connection.invalidate()
            await connection.close()
