"""Days of history in the database: made ahead without holding anybody up, and dropped whole."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gatemesh_common.clock import Clock
from gatemesh_common.database import transaction
from gatemesh_common.errors import LockHeldError
from gatemesh_health_manager.days import (
    Part,
    Span,
    day_of,
    evidence_of,
    expired,
    span_of,
    wanted,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Divided:
    """A table in days, and the column that tells the day."""

    name: str
    moment: str

    @property
    def other(self) -> str:
        """The part for rows of days that nobody has foreseen."""
        return f"{self.name}_other"


VERDICTS = Divided("verdicts", "received_at")
INPUTS = Divided("decision_inputs", "at")
TELEMETRY = Divided("telemetry_windows", "window_end")
CAPTURES = Divided("captures", "received_at")
DIVIDED = (VERDICTS, INPUTS, TELEMETRY, CAPTURES)


@dataclass(frozen=True)
class Holder:
    """Who holds a lock on a table of days."""

    table: str
    mode: str
    pid: int | None
    """Of the session; None for a prepared transaction, which has none."""
    user: str
    program: str
    """What the session calls itself."""


@dataclass(frozen=True)
class Blockade:
    """What is in the way of making days."""

    without_today: tuple[str, ...]
    """Tables that still lack the day whose rows come now."""
    holders: tuple[Holder, ...]


ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtext('gatemesh.days'))")
# Whoever waits for the whole table holds up all who come after him, so he waits for a moment only.
PATIENCE = "SET LOCAL lock_timeout = '1s'"
PARTS = text("""
    SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = CAST(:name AS regclass) ORDER BY c.relname""")
# Attaching a day needs the part for all others to itself, and the table without changes of form.
HOLDERS = text("""
    SELECT DISTINCT c.relname, l.mode, l.pid, coalesce(a.usename, '') AS usename,
        coalesce(a.application_name, '') AS application_name
    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (c.relname = ANY(:others) OR (c.relname = ANY(:tables)
        AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')))
    ORDER BY 1, 3, 2""")
UNFINISHED = text("""
    SELECT i.opened_at FROM incidents i JOIN instances n USING (instance_id)
    WHERE i.status IN ('open','held') OR (i.status = 'quarantined' AND n.state = 'quarantined')""")


class DayStore:
    """Sees to it that there is a day for what comes, and none for what is past keeping.

    Every method raises as those of `Store` do.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def prepare(self) -> int:
        """Make the days that are to come; return how many were made.

        Raises:
            LockHeldError: somebody uses a table so that it gets none now; all others have theirs.
        """
        now, made, held = self._clock(), 0, None
        for table in DIVIDED:
            # One transaction each: a table that is in use keeps no other from its days.
            try:
                async with transaction(self._engine) as connection:
                    made += await make_days(connection, table, now)
            except LockHeldError as error:
                held = error
        if held is not None:
            raise held
        return made

    async def blockade(self) -> Blockade:
        """Return what is in the way of making days, as far as it can be seen."""
        async with transaction(self._engine) as connection:
            known = {
                "tables": [table.name for table in DIVIDED],
                "others": [table.other for table in DIVIDED],
            }
            holders = tuple(Holder(*row) for row in await connection.execute(HOLDERS, known))
        lacking = tuple([table.name for table in DIVIDED if await self._lacks_today(table)])
        return Blockade(lacking, holders)

    async def _lacks_today(self, table: Divided) -> bool:
        """True when today could have a day of its own in this table and has none."""
        today = day_of(self._clock())
        try:
            async with transaction(self._engine) as connection:
                await connection.exec_driver_sql(PATIENCE)
                if any(today.meets(part.span) for part in await parts_of(connection, table)):
                    return False
                return not await has_strays(connection, table, today)
        except LockHeldError:
            return True

    async def forget(self, older_than: timedelta) -> int:
        """Drop days of verdicts and telemetry; return how many days and stray rows went.

        The evidence of an incident stays until it is over and its instance released.
        """
        before, gone = self._clock() - older_than, 0
        for table in (VERDICTS, TELEMETRY):
            async with transaction(self._engine) as connection:
                needed = await unfinished(connection)
                gone += await drop_days(connection, table, before, needed)
        return gone

    async def forget_captures(self, older_than: timedelta) -> int:
        """Drop days of captures, whatever they are evidence of: they may hold text."""
        async with transaction(self._engine) as connection:
            return await drop_days(connection, CAPTURES, self._clock() - older_than)


async def parts_of(connection: AsyncConnection, table: Divided) -> list[Part]:
    """Return the days that a table has."""
    rows = await connection.execute(PARTS, {"name": table.name})
    return [Part(name, span) for name, bound in rows if (span := span_of(bound)) is not None]


async def make_days(connection: AsyncConnection, table: Divided, now: datetime) -> int:
    """Make the days that a table lacks; return how many."""
    await connection.execute(ONE_AT_A_TIME)
    await connection.exec_driver_sql(PATIENCE)
    made = 0
    for part in wanted(table.name, await parts_of(connection, table), now):
        if await has_strays(connection, table, part.span):
            log.warning("day_not_made", extra={"day": part.name, "rows_lie_in": table.other})
            continue
        await attach(connection, table, part)
        made += 1
    return made


async def has_strays(connection: AsyncConnection, table: Divided, span: Span) -> bool:
    """True when rows of a day lie in the part for all others: it keeps them, and that day."""
    query = text(
        f"SELECT 1 FROM {table.other} WHERE {table.moment} >= :begin "  # noqa: S608
        f"AND {table.moment} < :end LIMIT 1"
    )
    found = await connection.execute(query, {"begin": span.begin, "end": span.end})
    return found.first() is not None


async def attach(connection: AsyncConnection, table: Divided, part: Part) -> None:
    """Make one day: a table by itself first, since attaching one lets others read and write."""
    await connection.exec_driver_sql(
        f"CREATE TABLE {part.name} (LIKE {table.name} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
    )
    await connection.exec_driver_sql(
        f"ALTER TABLE {table.name} ATTACH PARTITION {part.name} "
        f"FOR VALUES FROM ('{part.span.begin.isoformat()}') TO ('{part.span.end.isoformat()}')"
    )


async def unfinished(connection: AsyncConnection) -> list[Span]:
    """Return the times in which the evidence of incidents lies that are not over."""
    return [evidence_of(at) for at in (await connection.execute(UNFINISHED)).scalars()]


async def drop_days(
    connection: AsyncConnection, table: Divided, before: datetime, needed: Collection[Span] = ()
) -> int:
    """Drop the days that ended before a moment, and stray rows; return how many of both."""
    await connection.execute(ONE_AT_A_TIME)
    await connection.exec_driver_sql(PATIENCE)
    parts = expired(await parts_of(connection, table), before, needed)
    for part in parts:
        await connection.exec_driver_sql(f"DROP TABLE {part.name}")
        log.info("day_dropped", extra={"day": part.name})
    return len(parts) + await delete_strays(connection, table, before, needed)


async def delete_strays(
    connection: AsyncConnection, table: Divided, before: datetime, needed: Collection[Span]
) -> int:
    """Delete rows from before a moment that lie in no day of their own; return how many."""
    query = text(
        f"DELETE FROM {table.other} o WHERE o.{table.moment} < :before AND NOT EXISTS ("  # noqa: S608
        "SELECT 1 FROM unnest(CAST(:begins AS timestamptz[]), CAST(:ends AS timestamptz[]))"
        f" AS n (begin, until) WHERE o.{table.moment} >= n.begin AND o.{table.moment} < n.until)"
    )
    known = {
        "before": before,
        "begins": [span.begin for span in needed],
        "ends": [span.end for span in needed],
    }
    return (await connection.execute(query, known)).rowcount
