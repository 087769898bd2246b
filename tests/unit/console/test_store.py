"""Only versioned views are read, every query is bounded, and missing views are no fault."""

import re
from typing import Any

import psycopg.errors
import pytest
from sqlalchemy.exc import ProgrammingError

from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_console import store
from gatemesh_console.store import Store, open_store

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

    def __init__(self, fault: type[psycopg.Error]) -> None:
        self._fault = fault

    async def _read(self, query: str, values: Any) -> list[dict[str, Any]]:
        raise ProgrammingError(query, values, self._fault())


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


async def test_a_session_is_read_only_and_has_its_role() -> None:
    """Even a login that owns the tables can change nothing by way of a page."""
    opened = open_store("postgresql://u@h/d", "gatemesh_reader", 5)
    try:
        engine = opened._engine
        _, known = engine.dialect.create_connect_args(engine.url)
        assert known["host"] == "h"
    finally:
        await opened.close()
