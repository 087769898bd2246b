"""The database as services meet it: one way to open it, and faults told apart by what helps."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row
from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    OperationalError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from gatemesh_common.errors import DatabaseUnavailableError, GatemeshError, LockHeldError

DRIVER = "postgresql+psycopg"
SCHEMA_FAULTS = frozenset({"42P01", "42703", "3F000"})
"""Undefined table, column or schema: the migrations have not run; no message is to blame."""
READ_ONLY = "25006"
"""The server is a standby: it passes with the fail-over."""
LOCK_HELD = "55P03"
"""A lock was not to be had within `lock_timeout`."""


class DataRefusedError(GatemeshError):
    """The database refuses the data of a message; sending it again cannot help."""


def with_driver(url: str) -> str:
    """Return the address as SQLAlchemy takes it; `postgres://` and `postgresql://` are welcome."""
    scheme, separator, rest = url.partition("://")
    known = scheme in ("postgres", "postgresql")
    return f"{DRIVER}{separator}{rest}" if known else url


SERVER_OPTIONS = (
    "-c timezone=UTC -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5"
    " -c tcp_keepalives_count=3 -c tcp_user_timeout=25000"
)
"""The server, too, notices within 25 s that the machine at the other end is gone: it would keep
the locks and the lead of that session for two hours."""


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
        # The connection that was used last knows the statements already.
        pool_use_lifo=True,
        max_overflow=0,
        pool_timeout=deadline_s,
        connect_args={
            "connect_timeout": max(1, int(deadline_s)),
            "keepalives_idle": 10,
            "tcp_user_timeout": deadline_ms,
            "options": f"-c statement_timeout={deadline_ms} {SERVER_OPTIONS} {options}".rstrip(),
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


class Query(NamedTuple):
    """A statement that is always the same, and its parameters."""

    statement: ClauseElement
    parameters: Mapping[str, Any]


Answer = Sequence[Mapping[str, Any]]
"""The rows of one query."""


@cache
def wording(statement: ClauseElement, dialect: Dialect) -> str:
    """Return a statement as the driver takes it."""
    return str(statement.compile(dialect=dialect))


async def ask_together(connection: AsyncConnection, queries: Iterable[Query]) -> list[Answer]:
    """Return the answers of queries that go to the server at once, and are run in their order."""
    driver, dialect = await driver_of(connection), connection.dialect
    async with together(connection):
        cursors = [
            await driver.cursor(row_factory=dict_row).execute(wording(one, dialect), parameters)
            for one, parameters in queries
        ]
    # Behind the pipeline, whose end brings all answers: inside, each would be asked for anew.
    return [await cursor.fetchall() for cursor in cursors]


@asynccontextmanager
async def together(connection: AsyncConnection) -> AsyncIterator[None]:
    """Let statements inside that answer nothing go to the server without waiting for each.

    What the server refuses is raised at the end of the block. Inserts must be `inline`.
    """
    driver = await driver_of(connection)
    try:
        async with driver.pipeline():
            yield
    except errors.PipelineAborted as abort:
        raise first_fault(abort) from None


def first_fault(abort: BaseException) -> BaseException:
    """Return what the server refused, of an abort that only says that the rest was not tried."""
    while isinstance(abort, errors.PipelineAborted) and abort.__context__ is not None:
        abort = abort.__context__
    return abort


async def driver_of(connection: AsyncConnection) -> "psycopg.AsyncConnection[Any]":
    """Return the driver's own connection, in the same transaction."""
    raw = await connection.get_raw_connection()
    driver = raw.driver_connection
    if not isinstance(driver, psycopg.AsyncConnection):
        raise TypeError("this needs psycopg")
    return driver


ROWS_AT_ONCE = 25
"""Rows written in one go: a fraction of a millisecond during which nothing else is done."""


async def copy_rows(
    connection: AsyncConnection, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert many rows in one stream, in the connection's transaction; JSON must be wrapped."""
    driver = await driver_of(connection)
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    async with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for number, row in enumerate(rows, 1):
            await copy.write_row(row)
            if number % ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)


async def insert_few(
    connection: AsyncConnection, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert a few rows by statements, so that they can go `together` with others."""
    driver = await driver_of(connection)
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join([sql.Placeholder()] * len(names)),
    )
    await driver.cursor().executemany(statement, list(rows))


Fault = StatementError | PoolTimeoutError | psycopg.Error


def as_ours(error: Fault) -> GatemeshError:
    """Return the fault of the database as one of our errors."""
    if sqlstate(error) == LOCK_HELD:
        return LockHeldError(f"database: {fault_name(error)}")
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
