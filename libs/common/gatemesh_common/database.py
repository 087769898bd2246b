"""The database as services meet it: one way to open it, and faults told apart by what helps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
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


def open_database(url: str, *, pool_size: int = 8, deadline_s: float = 10.0) -> AsyncEngine:
    """Return an engine on which no connect, statement or wait outlasts the deadline."""
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
            "options": f"-c statement_timeout={deadline_ms} -c timezone=UTC",
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
    except (DBAPIError, StatementError, PoolTimeoutError) as error:
        raise as_ours(error) from error


def as_ours(error: DBAPIError | StatementError | PoolTimeoutError) -> GatemeshError:
    """Return the fault of the database as one of our errors."""
    if is_passing(error):
        return DatabaseUnavailableError(f"database: {fault_name(error)}")
    return DataRefusedError(f"the database refuses it: {fault_name(error)}")


def is_passing(error: DBAPIError | StatementError | PoolTimeoutError) -> bool:
    """True when time, or whoever looks after the database, makes it go away."""
    if isinstance(error, (OperationalError, InterfaceError, PoolTimeoutError)):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = sqlstate(error)
    undefined = isinstance(error, ProgrammingError) and state in SCHEMA_FAULTS
    return error.connection_invalidated or undefined or state == READ_ONLY


def sqlstate(error: DBAPIError) -> str:
    """Return the five signs by which the server names a fault, or nothing."""
    return str(getattr(error.orig, "sqlstate", None) or "")


def fault_name(error: DBAPIError | StatementError | PoolTimeoutError) -> str:
    """Name a fault without repeating data: its class and the server's code."""
    origin = error.orig if isinstance(error, StatementError) else None
    name = type(origin or error).__name__
    state = sqlstate(error) if isinstance(error, DBAPIError) else ""
    return f"{name} {state}".rstrip()
