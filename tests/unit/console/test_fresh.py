"""A query that many pages ask for runs once in a while."""

import asyncio
from typing import Any

import pytest

from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_console.fresh import Fresh


class Query:
    """Counts how often it ran; may fail."""

    def __init__(self) -> None:
        self.runs = 0
        self.now_s = 0.0
        self.fails = False

    async def __call__(self) -> list[dict[str, Any]]:
        """Return a row with the number of the run."""
        self.runs += 1
        await asyncio.sleep(0)
        if self.fails:
            raise DatabaseUnavailableError("away")
        return [{"run": self.runs}]


async def test_many_who_ask_at_once_get_one_answer() -> None:
    """And the next one after its time."""
    query = Query()
    fresh = Fresh(query, 10, lambda: query.now_s)
    found = await asyncio.gather(*(fresh.rows() for _ in range(5)))
    assert found == [[{"run": 1}]] * 5
    query.now_s = 9.9
    assert await fresh.rows() == [{"run": 1}]
    query.now_s = 10.0
    assert await fresh.rows() == [{"run": 2}]


async def test_a_fault_is_told_and_not_kept() -> None:
    """The next one asks again."""
    query = Query()
    fresh = Fresh(query, 10, lambda: query.now_s)
    query.fails = True
    with pytest.raises(DatabaseUnavailableError):
        await fresh.rows()
    query.fails = False
    assert await fresh.rows() == [{"run": 2}]
