"""What the database tells: the versioned views, read only."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from gatemesh_ctl.addresses import DATABASE_VARIABLE, shown
from gatemesh_ctl.errors import CtlError, UnreachableError

Row = dict[str, Any]
"""One row of a view by column."""

CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT = "10s"
BEFORE_INCIDENT = timedelta(seconds=60)
"""Evidence this much older than an incident belongs to its timeline."""

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
UNDEFINED_TABLE = "42P01"
FORBIDDEN = "42501"

HEALTH = "instance_health_v1"
INCIDENTS = "incidents_v1"
VERDICTS = "verdicts_v1"
DECIDED = "decided_verdicts_v1"
COMMANDS = "commands_v1"
REFUSED = "refused_commands_v1"
REQUESTS = "requests_v1"
TIMELINE = "timeline_v1"
TRANSITIONS = "transitions_v1"
POOLS = "pools_v1"
POLICIES = "policy_versions_v1"
INPUTS = "decision_inputs_v1"
SCHEMA = "schema_v1"
TRAFFIC = "traffic_v1"
TRAFFIC_SPAN = timedelta(hours=1)
"""What is summed up as the present traffic."""

ORDERS = {
    HEALTH: ("pool", "instance_id"),
    POOLS: ("pool",),
    INCIDENTS: ("opened_at",),
    VERDICTS: ("received_at",),
    COMMANDS: ("issued_at",),
    REFUSED: ("received_at",),
    REQUESTS: ("requested_at",),
    TIMELINE: ("at",),
}
"""The columns that say which row is newer, or comes first."""

RECENT_TRAFFIC = """
    SELECT pool, sum(requests) AS requests, sum(tokens) AS tokens, sum(unguarded) AS unguarded
    FROM traffic_v1 WHERE window_end > now() - %(span)s GROUP BY pool ORDER BY pool"""
OF_INCIDENT = """
    SELECT * FROM timeline_v1
    WHERE incident_id = %(incident)s OR (instance_id = %(instance)s AND incident_id IS NULL
        AND at BETWEEN %(since)s AND coalesce(%(until)s, now()))
    ORDER BY at"""
BY_BEGINNING = "SELECT * FROM incidents_v1 WHERE starts_with(incident_id, %(id)s) LIMIT 2"
OF_OPERATOR = """
    SELECT * FROM incidents_v1
    WHERE instance_id = %(instance)s AND condition = 'operator' AND opened_at >= %(since)s
    ORDER BY opened_at LIMIT 1"""
OF_POOL = """
    SELECT * FROM incidents_v1 WHERE pool = %(pool)s AND condition = 'operator'
        AND playbook = %(playbook)s AND opened_at >= %(since)s
    ORDER BY instance_id"""


def checked_url(url: str) -> str:
    """Return the address as the driver takes it.

    Raises:
        CtlError: it is no PostgreSQL address; says what one looks like.
    """
    scheme, _, rest = url.partition("://")
    address = f"postgresql://{rest}"
    if scheme not in SCHEMES or not is_readable(address):
        raise CtlError(
            "the address of the database is no PostgreSQL address",
            f"set {DATABASE_VARIABLE} to postgresql://user:password@host:port/database",
        )
    return address


def is_readable(address: str) -> bool:
    """True when the driver can read an address; the driver's own words may repeat a password."""
    try:
        _ = urlsplit(address).port
        conninfo_to_dict(address)
    except (ValueError, psycopg.ProgrammingError):
        return False
    return True


class Store:
    """Reads the views; every call says clearly why it could not."""

    def __init__(self, url: str, *, connect_timeout_s: int = CONNECT_TIMEOUT_S) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._place = shown(url)
        self._url = checked_url(url)
        self._connection: psycopg.Connection[Row] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection up; the next reading opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def newest(self, view: str, limit: int, **equals: object) -> list[Row]:
        """Return the newest rows whose columns have these values, oldest of them first.

        A value None asks nothing of its column.
        """
        return self._select(view, equals, descending=True, limit=limit)[::-1]

    def instances(self, **equals: object) -> list[Row]:
        """Return instances by pool and name."""
        return self._select(HEALTH, equals)

    def pools(self) -> list[Row]:
        """Return pools by name."""
        return self._select(POOLS, {})

    def traffic(self) -> list[Row]:
        """Return what each pool answered within the last hour, and what no gate looked at."""
        return self.read(RECENT_TRAFFIC, {"span": TRAFFIC_SPAN})

    def instance(self, instance_id: str) -> Row:
        """Return one instance.

        Raises:
            CtlError: it is unknown; names those that are known.
        """
        rows = self.instances()
        for row in rows:
            if row["instance_id"] == instance_id:
                return row
        known = ", ".join(row["instance_id"] for row in rows) or "none yet"
        raise CtlError(f"there is no instance {instance_id!r}", f"known instances: {known}")

    def incident(self, incident_id: str) -> Row:
        """Return one incident; the beginning of its id is enough.

        Raises:
            CtlError: none, or more than one, has such an id.
        """
        rows = self.read(BY_BEGINNING, {"id": incident_id})
        if len(rows) == 1:
            return rows[0]
        wrong = "there is no incident" if not rows else "more than one incident begins with"
        raise CtlError(f"{wrong} {incident_id!r}", "gatemesh-ctl incidents lists them")

    def incident_timeline(self, incident: Row) -> list[Row]:
        """Return all that belongs to an incident, with the evidence just before it."""
        return self.read(
            OF_INCIDENT,
            {
                "incident": incident["incident_id"],
                "instance": incident["instance_id"],
                "since": incident["opened_at"] - BEFORE_INCIDENT,
                "until": incident["ended_at"],
            },
        )

    def request(self, message_id: str) -> Row | None:
        """Return how a request was decided; None while it is not."""
        rows = self.newest(REQUESTS, 1, message_id=message_id)
        return rows[0] if rows else None

    def operator_incident(self, instance_id: str, since: datetime) -> Row | None:
        """Return the incident that an operator's request opened at that moment or later."""
        rows = self.read(OF_OPERATOR, {"instance": instance_id, "since": since})
        return rows[0] if rows else None

    def pool_incidents(self, pool: str, playbook: str, since: datetime) -> list[Row]:
        """Return the incidents that an operator's request about a whole pool opened."""
        return self.read(OF_POOL, {"pool": pool, "playbook": playbook, "since": since})

    def _select(
        self,
        view: str,
        equals: Mapping[str, object],
        *,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[Row]:
        given = {name: value for name, value in equals.items() if value is not None}
        return self.read(selection(view, list(given), descending=descending, limit=limit), given)

    def read(
        self, query: str | sql.Composed, values: Mapping[str, object] | None = None
    ) -> list[Row]:
        """Return the rows of a query over the views.

        Raises:
            UnreachableError: the database does not answer.
            CtlError: it refuses; says the way out.
        """
        try:
            rows = self._open().execute(query.encode() if isinstance(query, str) else query, values)
            return rows.fetchall()
        except psycopg.OperationalError as error:
            self.close()
            raise UnreachableError(
                f"the database at {self._place} does not answer as asked: {first_line(error)}",
                f"check that it runs and that {DATABASE_VARIABLE} is right",
            ) from None
        except psycopg.Error as error:
            raise explained(error) from None

    def _open(self) -> psycopg.Connection[Row]:
        """Return a connection whose every statement is read only and bounded."""
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=self._connect_timeout_s,
                application_name="gatemesh-ctl",
                options=f"-c default_transaction_read_only=on -c timezone=UTC "
                f"-c statement_timeout={STATEMENT_TIMEOUT}",
            )
        return self._connection


def selection(
    view: str, columns: Sequence[str], *, descending: bool, limit: int | None
) -> sql.Composed:
    """Return the query for rows of a view, in its order, whose columns have given values."""
    parts: list[sql.Composable] = [sql.SQL("SELECT * FROM {}").format(sql.Identifier(view))]
    if columns:
        same = [
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name))
            for name in columns
        ]
        parts.append(sql.SQL("WHERE {}").format(sql.SQL(" AND ").join(same)))
    way = sql.SQL(" DESC") if descending else sql.SQL("")
    order = [sql.Identifier(name) + way for name in ORDERS[view]]
    parts.append(sql.SQL("ORDER BY {}").format(sql.SQL(", ").join(order)))
    if limit is not None:
        parts.append(sql.SQL("LIMIT {}").format(sql.Literal(limit)))
    return sql.SQL(" ").join(parts)


def explained(error: psycopg.Error) -> CtlError:
    """Say what a refused query means to the operator."""
    if error.sqlstate == UNDEFINED_TABLE:
        return CtlError(
            f"the database lacks a view: {first_line(error)}",
            "bring it up to date with python -m gatemesh_health_manager migrate",
        )
    if error.sqlstate == FORBIDDEN:
        return CtlError(
            f"this user may not read the views: {first_line(error)}",
            "grant it the role gatemesh_reader",
        )
    return CtlError(f"the database refuses the query: {first_line(error)}", "report this as a bug")


def first_line(error: psycopg.Error) -> str:
    """Return what the driver said, in one line."""
    return str(error).strip().partition("\n")[0]
