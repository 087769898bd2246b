"""Faults of the database, told apart by what helps."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from gatemesh_common.database import (
    DataRefusedError,
    as_ours,
    fault_name,
    first_fault,
    open_database,
    with_driver,
)
from gatemesh_common.errors import DatabaseUnavailableError, LockHeldError


@pytest.mark.parametrize(
    ("url", "used"),
    [
        ("postgresql://u:p@h:1/d", "postgresql+psycopg://u:p@h:1/d"),
        ("postgres://u:p@h:1/d", "postgresql+psycopg://u:p@h:1/d"),
        ("postgresql+psycopg://u:p@h:1/d", "postgresql+psycopg://u:p@h:1/d"),
    ],
)
def test_addresses_as_people_write_them(url: str, used: str) -> None:
    """All of them lead to our driver."""
    assert with_driver(url) == used


def wrapped(kind: type[DBAPIError], origin: Exception, *, lost: bool = False) -> DBAPIError:
    """Return an error as SQLAlchemy hands it on."""
    return kind("SELECT secret", {}, origin, connection_invalidated=lost)


def test_a_lock_of_somebody_else_is_told_apart() -> None:
    """Who holds it can be found out."""
    held = as_ours(wrapped(OperationalError, errors.LockNotAvailable()))
    assert isinstance(held, LockHeldError)
    assert not isinstance(as_ours(errors.DeadlockDetected()), LockHeldError)


@pytest.mark.parametrize(
    "fault",
    [
        wrapped(OperationalError, errors.SerializationFailure()),
        wrapped(OperationalError, errors.DeadlockDetected()),
        wrapped(OperationalError, errors.LockNotAvailable()),
        wrapped(OperationalError, errors.AdminShutdown()),
        wrapped(ProgrammingError, errors.UndefinedTable()),
        wrapped(DBAPIError, errors.ReadOnlySqlTransaction()),
        wrapped(DBAPIError, errors.InternalError_(), lost=True),
        PoolTimeoutError(),
        psycopg.OperationalError(),
        errors.UndefinedColumn(),
    ],
    ids=fault_name,
)
def test_passing_faults(fault: StatementError | PoolTimeoutError | psycopg.Error) -> None:
    """Time, or whoever looks after the database, makes them go away."""
    assert isinstance(as_ours(fault), DatabaseUnavailableError)


@pytest.mark.parametrize(
    "fault",
    [
        wrapped(DBAPIError, errors.InvalidTextRepresentation()),
        wrapped(DBAPIError, errors.UniqueViolation()),
        errors.NumericValueOutOfRange(),
        StatementError("no", "SELECT secret", {}, ValueError("secret")),
    ],
    ids=fault_name,
)
def test_refusals(fault: StatementError | psycopg.Error) -> None:
    """The data is at fault; its words are not repeated."""
    ours = as_ours(fault)
    assert isinstance(ours, DataRefusedError)
    assert "secret" not in str(ours)


def test_opening_connects_to_nothing() -> None:
    """A service starts before its database."""
    engine = open_database("postgresql://u:p@127.0.0.1:1/d", pool_size=2)
    assert engine.url.drivername == "postgresql+psycopg"


def test_an_abort_hides_no_refusal() -> None:
    """Else what the database refuses for good would be tried for ever."""
    refusal, abort, last = errors.UniqueViolation(), *(errors.PipelineAborted() for _ in "12")
    abort.__context__, last.__context__ = refusal, abort
    assert first_fault(last) is refusal
    assert first_fault(refusal) is refusal
    alone = errors.PipelineAborted()
    assert first_fault(alone) is alone
