"""The database as services meet it: one way to open it, and faults told apart by what helps."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    OperationalError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from gatemesh_common.errors import DatabaseUnavailableError, GatemeshError

DRIVER = "postgresql+psycopg"
SCHEMA_FAULTS = frozenset({"42P01", "42703", "3F000"})
"""Undefined table, column or schema: the migrations have not run; no message is to blame."""
READ_ONLY = "25006"
"""The server is a standby: it passes with the fail-over."""


class DataRefusedError(GatemeshError):
    """The database refuses the data of a message; sending it again cannot help."""


def with_driver(url: str) -> str:
    """Return the address as SQLAlchemy takes it; `postgres://` and `postgresql://` are welcome."""
    scheme, separator, rest = url.partition("://")
    known = scheme in ("postgres", "postgresql")
    return f"{DRIVER}{separator}{rest}" if known else url


def open_database(
    url: str, *, pool_size: int = 8, deadline_s: float = 10.0, options: str = ""
) -> AsyncEngine:
    """Return an engine on which no connect, statement or wait outlasts the deadline.

    `options` are more of the server's, such as `-c default_transaction_read_only=on`.
    """
    deadline_ms = int(deadline_s * 1000)
    return create_async_engine(
        with_driver(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=deadline_s,
        connect_args={
            "connect_timeout": max(1, int(deadline_s)),
            "keepalives_idle": 10,
            "tcp_user_timeout": deadline_ms,
            "options": f"-c statement_timeout={deadline_ms} -c timezone=UTC {options}".rstrip(),
        },
    )


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a transaction that commits at the end of the block.

    Raises:
        DatabaseUnavailableError: nothing was changed, or it is unknown; try again.
        DataRefusedError: the data cannot be stored.
    """
    try:
        async with engine.begin() as connection:
            yield connection
    except (StatementError, PoolTimeoutError, psycopg.Error) as error:
        raise as_ours(error) from error


async def copy_rows(
    connection: AsyncConnection, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert many rows in one stream, in the connection's transaction; JSON must be wrapped."""
    raw = await connection.get_raw_connection()
    driver = raw.driver_connection
    if not isinstance(driver, psycopg.AsyncConnection):
        raise TypeError("COPY needs psycopg")
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    async with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            await copy.write_row(row)


Fault = StatementError | PoolTimeoutError | psycopg.Error


def as_ours(error: Fault) -> GatemeshError:
    """Return the fault of the database as one of our errors."""
    if is_passing(error):
        return DatabaseUnavailableError(f"database: {fault_name(error)}")
    return DataRefusedError(f"the database refuses it: {fault_name(error)}")


def is_passing(error: Fault) -> bool:
    """True when time, or whoever looks after the database, makes it go away."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    state = sqlstate(error)
    return isinstance(error, PASSING) or state in SCHEMA_FAULTS or state == READ_ONLY


PASSING = (
    OperationalError,
    InterfaceError,
    PoolTimeoutError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)


def sqlstate(error: Fault) -> str:
    """Return the five signs by which the server names a fault, or nothing."""
    origin = error.orig if isinstance(error, StatementError) else error
    return (origin.sqlstate or "") if isinstance(origin, psycopg.Error) else ""


def fault_name(error: Fault) -> str:
    """Name a fault without repeating data: its class and the server's code."""
    origin = error.orig if isinstance(error, StatementError) else None
    return f"{type(origin or error).__name__} {sqlstate(error)}".rstrip()
