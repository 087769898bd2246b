"""Only versioned views are read, every query is bounded, and missing views are no fault."""

import re
from typing import Any

import psycopg.errors
import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from gatemesh_common.database import Fault
from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_console import store
from gatemesh_console.absence import Absence
from gatemesh_console.store import Store, is_silent, open_store

from .conftest import INCIDENT

QUERIES = {
    name: value
    for name, value in vars(store).items()
    if isinstance(value, str) and "SELECT" in value
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_query_reads_views_only_and_ends(name: str) -> None:
    """By a limit, or by the key of one row."""
    query = QUERIES[name]
    sources = set(re.findall(r"\bFROM ([a-z_0-9]+)", query))
    assert sources
    assert all(source.endswith("_v1") for source in sources)
    assert "LIMIT :limit" in query or re.search(r"WHERE \w+ = :\w+$", query)
    assert re.search(r"\b(INSERT|UPDATE|DELETE|CREATE)\b", query) is None


class Broken(Store):
    """Raises what a driver raises."""

    def __init__(self, fault: type[psycopg.Error] | None) -> None:
        super().__init__(create_async_engine("postgresql+psycopg://nowhere/none"), Absence(60.0))
        self.fault = fault
        self.asked = 0

    async def _read(self, query: str, values: Any) -> list[dict[str, Any]]:
        self.asked += 1
        if self.fault is None:
            return []
        raise OperationalError(query, values, self.fault())


@pytest.mark.parametrize(
    "fault", [psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege]
)
async def test_captures_that_cannot_be_had_are_none(fault: type[psycopg.Error]) -> None:
    """An older database lacks the view; texts take a role of their own."""
    assert await Broken(fault).captures(INCIDENT, 10) == ([], [])


async def test_any_other_view_that_is_missing_is_a_fault() -> None:
    """The migrations have not run."""
    with pytest.raises(DatabaseUnavailableError):
        await Broken(psycopg.errors.UndefinedTable).pools()


async def test_a_database_that_is_away_is_not_asked_by_everybody() -> None:
    """Whoever comes next is told at once."""
    broken = Broken(psycopg.OperationalError)
    for _ in range(5):
        with pytest.raises(DatabaseUnavailableError, match="OperationalError"):
            await broken.pools()
    assert broken.asked == 1


@pytest.mark.parametrize("fault", [psycopg.errors.QueryCanceled, psycopg.errors.UndefinedTable])
async def test_a_slow_question_says_nothing_of_others(fault: type[psycopg.Error]) -> None:
    """The database answers; another page may be quick."""
    broken = Broken(fault)
    with pytest.raises(DatabaseUnavailableError):
        await broken.pools()
    broken.fault = None
    assert await broken.pools() == []


@pytest.mark.parametrize(
    ("error", "silent"),
    [
        pytest.param(psycopg.OperationalError(), True, id="refused"),
        pytest.param(psycopg.errors.AdminShutdown(), True, id="stopping"),
        pytest.param(psycopg.errors.CannotConnectNow(), True, id="starting"),
        pytest.param(psycopg.errors.ConnectionFailure(), True, id="cut"),
        pytest.param(psycopg.errors.QueryCanceled(), False, id="slow"),
        pytest.param(PoolTimeoutError(), False, id="all-busy"),
    ],
)
def test_silence_is_told_from_slowness(error: Fault, silent: bool) -> None:  # noqa: FBT001
    """By the server's code, where it gave one."""
    assert is_silent(error) is silent


async def test_a_session_is_read_only_and_has_its_role() -> None:
    """Even a login that owns the tables can change nothing by way of a page."""
    opened = open_store("postgresql://u@h/d", "gatemesh_reader", 5)
    try:
        engine = opened._engine
        _, known = engine.dialect.create_connect_args(engine.url)
        assert known["host"] == "h"
    finally:
        await opened.close()
