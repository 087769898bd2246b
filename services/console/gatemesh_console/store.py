"""What the database tells of the fleet: versioned views only, read only, every query bounded."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.database import Fault, as_ours, open_database, sqlstate
from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_console.absence import Absence
from gatemesh_console.paging import Key, Page, Row, cut

POOL_SIZE = 4
PAGE_ROWS = 50
MOST_POOLS = 200
MOST_ROWS = 500
MISSING = frozenset({"42P01", "42501"})
"""A view is not there, or not for us."""

INSTANCE_KEY = ("pool", "instance_id")
INCIDENT_KEY = ("opened_at", "incident_id")
REQUEST_KEY = ("requested_at", "message_id")
VERDICT_KEY = ("received_at", "id")
EVENT_KEY = ("at", "instance_id", "kind", "what", "detail")

POOLS = "SELECT * FROM pools_v1 ORDER BY pool LIMIT :limit"
INSTANCES = """
    SELECT pool, instance_id, state, state_since, in_rotation, weight, score, incarnation,
        model_version, incident_id, condition, incident_status, incident_cause, paused, mode, would
    FROM instance_health_v1
    WHERE (CAST(:pool AS text) IS NULL OR pool = :pool)
        AND (CAST(:state AS text) IS NULL OR state = :state)
        AND (CAST(:after_0 AS text) IS NULL
            OR (pool, instance_id) > (CAST(:after_0 AS text), CAST(:after_1 AS text)))
    ORDER BY pool, instance_id LIMIT :limit"""
INSTANCE = "SELECT * FROM instance_health_v1 WHERE instance_id = :instance_id"
SCORES = "SELECT instance_id, score FROM instance_health_v1 ORDER BY instance_id LIMIT :limit"
STATES = """
    SELECT pool, state, count(*) AS instances FROM instance_health_v1
    GROUP BY pool, state ORDER BY pool, state LIMIT :limit"""
GATES = """
    SELECT t.pool, g.gate,
        sum(coalesce(CAST(g.counts ->> 'passed' AS bigint), 0)) AS passed,
        sum(coalesce(CAST(g.counts ->> 'failed' AS bigint), 0)) AS failed
    FROM traffic_v1 t, jsonb_each(t.gates) AS g (gate, counts)
    WHERE t.window_end > now() - make_interval(mins => :minutes)
    GROUP BY t.pool, g.gate ORDER BY t.pool, g.gate LIMIT :limit"""
FAILURES = """
    SELECT date_bin(make_interval(mins => :bin), received_at, TIMESTAMPTZ '2000-01-01') AS at,
        check_level, count(*) AS failed
    FROM verdicts_v1
    WHERE outcome = 'failed' AND received_at > now() - make_interval(mins => :minutes)
    GROUP BY 1, 2 ORDER BY 1, 2 LIMIT :limit"""
INCIDENTS = """
    SELECT * FROM incidents_v1
    WHERE (CAST(:pool AS text) IS NULL OR pool = :pool)
        AND (CAST(:status AS text) IS NULL OR status = :status)
        AND (CAST(:instance_id AS text) IS NULL OR instance_id = :instance_id)
        AND (CAST(:after_0 AS text) IS NULL
            OR (opened_at, incident_id) < (CAST(:after_0 AS timestamptz), CAST(:after_1 AS text)))
    ORDER BY opened_at DESC, incident_id DESC LIMIT :limit"""
INCIDENT = "SELECT * FROM incidents_v1 WHERE incident_id = :incident_id"
TRANSITIONS = """
    SELECT * FROM transitions_v1 WHERE incident_id = :incident_id ORDER BY at, id LIMIT :limit"""
COMMANDS = """
    SELECT * FROM commands_v1 WHERE incident_id = :incident_id ORDER BY issued_at LIMIT :limit"""
EVIDENCE = """
    SELECT * FROM verdicts_v1
    WHERE instance_id = :instance_id AND (outcome = 'failed' OR check_level = 'L5')
        AND received_at BETWEEN CAST(:since AS timestamptz) - interval '60 seconds'
            AND coalesce(CAST(:until AS timestamptz), now())
        AND (CAST(:after_0 AS text) IS NULL
            OR (received_at, id) > (CAST(:after_0 AS timestamptz), CAST(:after_1 AS bigint)))
    ORDER BY received_at, id LIMIT :limit"""
CAPTURES = """
    SELECT * FROM captures_v1
    WHERE instance_id = :instance_id
        AND (incident_id IS NULL OR incident_id = :incident_id)
        AND received_at BETWEEN CAST(:since AS timestamptz) - interval '10 minutes'
            AND coalesce(CAST(:until AS timestamptz), now())
    ORDER BY received_at LIMIT :limit"""
CAPTURE_TEXTS = """
    SELECT * FROM capture_texts_v1
    WHERE instance_id = :instance_id AND capture_id = ANY(CAST(:ids AS text[]))
        AND received_at BETWEEN CAST(:since AS timestamptz) - interval '10 minutes'
            AND coalesce(CAST(:until AS timestamptz), now())
    ORDER BY received_at LIMIT :limit"""
REQUESTS = """
    SELECT * FROM requests_v1
    WHERE (CAST(:after_0 AS text) IS NULL
        OR (requested_at, message_id) < (CAST(:after_0 AS timestamptz), CAST(:after_1 AS text)))
    ORDER BY requested_at DESC, message_id DESC LIMIT :limit"""
REQUEST = "SELECT * FROM requests_v1 WHERE message_id = :message_id"
POLICIES = """
    SELECT version, first_used_at FROM policy_versions_v1
    ORDER BY first_used_at DESC, version LIMIT :limit"""
POLICY = "SELECT * FROM policy_versions_v1 WHERE version = :version"
TIMELINE = """
    SELECT arrived_at AS at, instance_id, incident_id, kind, what, coalesce(detail, '') AS detail
    FROM arrivals_v1
    WHERE arrived_at > CAST(:since AS timestamptz)
        AND arrived_at <= least(coalesce(CAST(:until AS timestamptz), 'infinity'),
            coalesce(CAST(:after_0 AS timestamptz), 'infinity'))
        AND (CAST(:after_0 AS text) IS NULL OR arrived_at < CAST(:after_0 AS timestamptz)
            OR (instance_id, kind, what, coalesce(detail, '')) > (CAST(:after_1 AS text),
                CAST(:after_2 AS text), CAST(:after_3 AS text), CAST(:after_4 AS text)))
    ORDER BY arrived_at DESC, instance_id, kind, what, coalesce(detail, '') LIMIT :limit"""


def open_store(url: str, role: str, deadline_s: float) -> "Store":
    """Return a store whose sessions can change nothing and have the rights of that role."""
    options = "-c default_transaction_read_only=on -c application_name=gatemesh-console"
    taken = f" -c role={role}" if role else ""
    engine = open_database(
        url, pool_size=POOL_SIZE, deadline_s=deadline_s, options=f"{options}{taken}"
    )
    return Store(engine, Absence(deadline_s))


class Store:
    """Reads the views.

    Raises, in every method:
        DatabaseUnavailableError: the database did not answer in time.
        DataRefusedError: a value that was asked for is none of its column.
    """

    def __init__(self, engine: AsyncEngine, absence: Absence) -> None:
        self._engine = engine
        self._absence = absence

    async def close(self) -> None:
        """Leave the database."""
        await self._engine.dispose()

    async def pools(self) -> list[Row]:
        """Return pools by name."""
        return await self._rows(POOLS, limit=MOST_POOLS)

    async def states(self) -> list[Row]:
        """Return how many instances of each pool are in each state."""
        return await self._rows(STATES, limit=MOST_ROWS)

    async def scores(self, most: int) -> list[Row]:
        """Return the present score of every instance."""
        return await self._rows(SCORES, limit=most)

    async def gates(self, minutes: int) -> list[Row]:
        """Return what each pool's gates counted in the last minutes, passes included."""
        return await self._rows(GATES, minutes=minutes, limit=MOST_ROWS)

    async def failures(self, minutes: int, bin_minutes: int) -> list[Row]:
        """Return how many failures each gate reported, by time."""
        return await self._rows(FAILURES, minutes=minutes, bin=bin_minutes, limit=2 * MOST_ROWS)

    async def instances(
        self, pool: str | None, state: str | None, after: Key | None, limit: int = PAGE_ROWS
    ) -> Page:
        """Return a page of instances by pool and name."""
        return await self._page(INSTANCES, INSTANCE_KEY, after, limit, pool=pool, state=state)

    async def instance(self, instance_id: str) -> Row | None:
        """Return all that the view tells of one instance."""
        return await self._row(INSTANCE, instance_id=instance_id)

    async def incidents(
        self,
        pool: str | None,
        status: str | None,
        instance_id: str | None,
        after: Key | None,
        limit: int = PAGE_ROWS,
    ) -> Page:
        """Return a page of incidents, the newest first."""
        return await self._page(
            INCIDENTS,
            INCIDENT_KEY,
            after,
            limit,
            pool=pool,
            status=status,
            instance_id=instance_id,
        )

    async def incident(self, incident_id: str) -> Row | None:
        """Return one incident."""
        return await self._row(INCIDENT, incident_id=incident_id)

    async def transitions(self, incident_id: str) -> list[Row]:
        """Return the steps in the state table that belong to an incident."""
        return await self._rows(TRANSITIONS, incident_id=incident_id, limit=MOST_ROWS)

    async def commands(self, incident_id: str) -> list[Row]:
        """Return what was ordered for an incident."""
        return await self._rows(COMMANDS, incident_id=incident_id, limit=MOST_ROWS)

    async def evidence(self, incident: Row, after: Key | None, limit: int = PAGE_ROWS) -> Page:
        """Return a page of verdicts from a minute before an incident to its end."""
        return await self._page(EVIDENCE, VERDICT_KEY, after, limit, **_span(incident))

    async def captures(self, incident: Row, limit: int) -> tuple[list[Row], list[Row]]:
        """Return what was captured around an incident, and its texts; none where views lack."""
        span = _span(incident)
        figures = await self._rows_if_any(
            CAPTURES, limit=limit, incident_id=incident["incident_id"], **span
        )
        ids = [row["capture_id"] for row in figures if row["has_text"]]
        if not ids:
            return figures, []
        return figures, await self._rows_if_any(CAPTURE_TEXTS, limit=limit, ids=ids, **span)

    async def requests(self, after: Key | None, limit: int = PAGE_ROWS) -> Page:
        """Return a page of what operators asked for, the newest first."""
        return await self._page(REQUESTS, REQUEST_KEY, after, limit)

    async def request(self, message_id: str) -> Row | None:
        """Return how a request was decided; None while it is not."""
        return await self._row(REQUEST, message_id=message_id)

    async def policies(self, limit: int = PAGE_ROWS) -> list[Row]:
        """Return the versions of the rules, the newest first."""
        return await self._rows(POLICIES, limit=limit)

    async def policy(self, version: str) -> Row | None:
        """Return one version of the rules."""
        return await self._row(POLICY, version=version)

    async def timeline(
        self, since: datetime, until: datetime | None, after: Key | None, limit: int = MOST_ROWS
    ) -> Page:
        """Return a page of what happened between two moments, the newest first."""
        return await self._page(TIMELINE, EVENT_KEY, after, limit, since=since, until=until)

    async def _page(
        self, query: str, columns: Sequence[str], after: Key | None, limit: int, **values: Any
    ) -> Page:
        words = after or (None,) * len(columns)
        keys = {f"after_{place}": word for place, word in enumerate(words)}
        return cut(await self._rows(query, limit=limit + 1, **keys, **values), limit, columns)

    async def _row(self, query: str, **values: Any) -> Row | None:
        rows = await self._rows(query, **values)
        return rows[0] if rows else None

    async def _rows(self, query: str, **values: Any) -> list[Row]:
        try:
            return await self._asked(query, values)
        except (StatementError, PoolTimeoutError, psycopg.Error) as error:
            raise as_ours(error) from error

    async def _rows_if_any(self, query: str, **values: Any) -> list[Row]:
        try:
            return await self._asked(query, values)
        except (StatementError, PoolTimeoutError, psycopg.Error) as error:
            if sqlstate(error) in MISSING:
                return []
            raise as_ours(error) from error

    async def _asked(self, query: str, values: Mapping[str, Any]) -> list[Row]:
        self._absence.check()
        try:
            rows = await self._read(query, values)
        except (StatementError, PoolTimeoutError, psycopg.Error) as error:
            ours = as_ours(error)
            if isinstance(ours, DatabaseUnavailableError) and is_silent(error):
                self._absence.begin(ours)
            elif sqlstate(error):
                self._absence.end()
            raise
        self._absence.end()
        return rows

    async def _read(self, query: str, values: Mapping[str, Any]) -> list[Row]:
        async with self._engine.connect() as connection:
            found = await connection.execute(text(query), dict(values))
            return [dict(row) for row in found.mappings()]


def is_silent(error: Fault) -> bool:
    """True when the database itself does not answer; one slow question says nothing of others."""
    if isinstance(error, PoolTimeoutError):
        return False
    state = sqlstate(error)
    return not state or state.startswith(("08", "57P"))


def _span(incident: Row) -> dict[str, Any]:
    return {
        "instance_id": incident["instance_id"],
        "since": incident["opened_at"],
        "until": incident["ended_at"],
    }
