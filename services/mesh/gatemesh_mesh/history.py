"""What the SQL views say about the stack, read as any operator would."""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import class_row

TIMELINE_QUERY = """
SELECT at, instance_id, kind, what, detail
FROM timeline_v1
WHERE instance_id = %(instance)s AND at >= %(since)s
ORDER BY at"""

HEALTHY = "SELECT count(*) FROM instance_health_v1 WHERE state = 'healthy' AND in_rotation"

OBSERVED_IN_ROTATION = """
SELECT min(observed_at) FROM instance_health_v1
WHERE in_rotation AND observed_at >= %(since)s"""

COMMANDS = "SELECT count(*) FROM commands_v1 WHERE action <> 'readmit'"

FIRST_FAILURE = """
SELECT min(coalesce((details ->> 'first_bad_token_at')::timestamptz, "timestamp"))
FROM verdicts_v1
WHERE instance_id = %(instance)s AND outcome = 'failed' AND check_level <> 'L5'
    AND "timestamp" >= %(since)s"""

REACHED = """
SELECT min(at) FROM transitions_v1
WHERE instance_id = %(instance)s AND after_state = %(state)s AND at >= %(since)s"""

CONFIRMED_OUT = """
SELECT min((step ->> 'at')::timestamptz)
FROM commands_v1, jsonb_array_elements(steps) AS step
WHERE instance_id = %(instance)s AND action IN ('eject', 'drain') AND issued_at >= %(since)s
    AND step ->> 'step' = 'confirmed'"""


@dataclass(frozen=True)
class Moment:
    """One line of an instance's history."""

    at: datetime
    instance_id: str
    kind: str
    what: str
    detail: str | None


class History:
    """Reads the views; each call is one short connection, so that nothing is held open."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    def timeline(self, instance: str, since: datetime) -> list[Moment]:
        """Return what happened to an instance since a moment, in order."""
        with (
            psycopg.connect(self._database_url) as connection,
            connection.cursor(row_factory=class_row(Moment)) as cursor,
        ):
            cursor.execute(TIMELINE_QUERY, {"instance": instance, "since": since})
            return cursor.fetchall()

    def count(self, query: str) -> int:
        """Return the number that a counting query gives."""
        with psycopg.connect(self._database_url) as connection:
            row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0

    def moment(
        self, query: str, instance: str, since: datetime, state: str = ""
    ) -> datetime | None:
        """Return the moment that a query finds, if it has come."""
        parameters = {"instance": instance, "since": since, "state": state}
        with psycopg.connect(self._database_url) as connection:
            row = connection.execute(query, parameters).fetchone()
        found = row[0] if row else None
        return found if isinstance(found, datetime) else None
