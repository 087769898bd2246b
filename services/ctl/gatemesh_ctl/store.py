"""What the database tells: the versioned views, read only."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Label,
    Select,
    and_,
    column,
    create_engine,
    func,
    or_,
    select,
    table,
    text,
)
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError

from gatemesh_common.database import DRIVER, with_driver
from gatemesh_ctl.addresses import DATABASE_VARIABLE, shown
from gatemesh_ctl.errors import CtlError, UnreachableError

Row = dict[str, Any]
"""One row of a view by column."""

CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT = "10s"
BEFORE_INCIDENT = timedelta(seconds=60)
"""Evidence this much older than an incident belongs to its timeline."""

UNDEFINED_TABLE = "42P01"
FORBIDDEN = "42501"

HEALTH = "instance_health_v1"
INCIDENTS = "incidents_v1"
VERDICTS = "verdicts_v1"
COMMANDS = "commands_v1"
REFUSED = "refused_commands_v1"
REQUESTS = "requests_v1"
TIMELINE = "timeline_v1"
POOLS = "pools_v1"
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


def driver_url(url: str) -> str:
    """Return the address as SQLAlchemy takes it with psycopg 3."""
    address = with_driver(url)
    if not address.startswith(f"{DRIVER}://"):
        raise CtlError(
            "the address of the database is no PostgreSQL address",
            f"set {DATABASE_VARIABLE} to postgresql://user:password@host:port/database",
        )
    return address


class Store:
    """Reads the views; every call says clearly why it could not."""

    def __init__(self, url: str) -> None:
        self._place = shown(url)
        self._engine = open_engine(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.dispose()

    def newest(self, view: str, limit: int, **equals: object) -> list[Row]:
        """Return the newest rows whose columns have these values, oldest of them first.

        A value None asks nothing of its column.
        """
        return self._run(_selection(view, equals, descending=True).limit(limit))[::-1]

    def instances(self, **equals: object) -> list[Row]:
        """Return instances by pool and name."""
        return self._run(_selection(HEALTH, equals, descending=False))

    def pools(self) -> list[Row]:
        """Return pools by name."""
        return self._run(_selection(POOLS, {}, descending=False))

    def traffic(self) -> list[Row]:
        """Return what each pool answered within the last hour, and what no gate looked at."""
        counts = ("requests", "tokens", "unguarded")
        pool: ColumnClause[str] = column("pool")
        ended_at: ColumnClause[datetime] = column("window_end")
        sums: list[Label[Any]] = [func.sum(column(name)).label(name) for name in counts]
        recent = ended_at > func.now() - TRAFFIC_SPAN
        query = select(pool, *sums).select_from(table(TRAFFIC)).where(recent)
        return self._run(query.group_by(pool).order_by(pool))

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
        matching = column("incident_id").startswith(incident_id, autoescape=True)
        rows = self._run(select(text("*")).select_from(table(INCIDENTS)).where(matching).limit(2))
        if len(rows) == 1:
            return rows[0]
        wrong = "there is no incident" if not rows else "more than one incident begins with"
        raise CtlError(f"{wrong} {incident_id!r}", "gatemesh-ctl incidents lists them")

    def incident_timeline(self, incident: Row) -> list[Row]:
        """Return all that belongs to an incident, with the evidence just before it."""
        ended_at = incident["ended_at"] or func.now()
        at: ColumnClause[datetime] = column("at")
        evidence = and_(
            column("instance_id") == incident["instance_id"],
            column("incident_id").is_(None),
            at.between(incident["opened_at"] - BEFORE_INCIDENT, ended_at),
        )
        own = column("incident_id") == incident["incident_id"]
        query = select(text("*")).select_from(table(TIMELINE)).where(or_(own, evidence))
        return self._run(query.order_by(at))

    def request(self, message_id: str) -> Row | None:
        """Return how a request was decided; None while it is not."""
        rows = self.newest(REQUESTS, 1, message_id=message_id)
        return rows[0] if rows else None

    def operator_incident(self, instance_id: str, since: datetime) -> Row | None:
        """Return the incident that an operator's request opened at that moment or later."""
        mine = and_(
            column("instance_id") == instance_id,
            column("condition") == "operator",
            column("opened_at") >= since,
        )
        query = select(text("*")).select_from(table(INCIDENTS)).where(mine)
        rows = self._run(query.order_by(column("opened_at")).limit(1))
        return rows[0] if rows else None

    def pool_incidents(self, pool: str, playbook: str, since: datetime) -> list[Row]:
        """Return the incidents that an operator's request about a whole pool opened."""
        mine = and_(
            column("pool") == pool,
            column("condition") == "operator",
            column("playbook") == playbook,
            column("opened_at") >= since,
        )
        query = select(text("*")).select_from(table(INCIDENTS)).where(mine)
        return self._run(query.order_by(column("instance_id")))

    def _run(self, query: Select[Any]) -> list[Row]:
        try:
            with self._engine.connect() as connection:
                return [dict(row) for row in connection.execute(query).mappings()]
        except OperationalError as error:
            raise UnreachableError(
                f"the database at {self._place} does not answer as asked: {first_line(error)}",
                f"check that it runs and that {DATABASE_VARIABLE} is right",
            ) from None
        except ProgrammingError as error:
            raise explained(error) from None


def open_engine(url: str) -> Engine:
    """Return an engine whose every transaction is read only and bounded."""
    try:
        return create_engine(
            driver_url(url),
            pool_size=1,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_S,
                "application_name": "gatemesh-ctl",
                "options": f"-c default_transaction_read_only=on "
                f"-c statement_timeout={STATEMENT_TIMEOUT}",
            },
        )
    except (ArgumentError, ValueError):
        raise CtlError(
            "the address of the database cannot be read",
            f"set {DATABASE_VARIABLE} to postgresql://user:password@host:port/database",
        ) from None


def explained(error: ProgrammingError) -> CtlError:
    """Say what a refused query means to the operator."""
    code = str(getattr(error.orig, "sqlstate", ""))
    if code == UNDEFINED_TABLE:
        return CtlError(
            f"the database lacks a view: {first_line(error)}",
            "bring it up to date with python -m gatemesh_health_manager migrate",
        )
    if code == FORBIDDEN:
        return CtlError(
            f"this user may not read the views: {first_line(error)}",
            "grant it the role gatemesh_reader",
        )
    return CtlError(f"the database refuses the query: {first_line(error)}", "report this as a bug")


def first_line(error: DBAPIError) -> str:
    """Return what the driver said, in one line."""
    return str(error.orig).strip().partition("\n")[0]


def _selection(view: str, equals: Mapping[str, object], *, descending: bool) -> Select[Any]:
    conditions = [column(name) == value for name, value in equals.items() if value is not None]
    order: list[ColumnElement[Any]] = [
        column(name).desc() if descending else column(name) for name in ORDERS[view]
    ]
    return select(text("*")).select_from(table(view)).where(*conditions).order_by(*order)
