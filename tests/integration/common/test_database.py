"""Faults of a real database, told apart by what helps."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.database import (
    DataRefusedError,
    Query,
    ask_together,
    open_database,
    together,
    transaction,
)
from gatemesh_common.errors import DatabaseUnavailableError

from ..gate import Gate  # noqa: TID252 (shared by the integration tests)

pytestmark = pytest.mark.integration
RunAll = Callable[[AsyncEngine, Sequence[str]], Awaitable[None]]


async def run(engine: AsyncEngine, *statements: str) -> None:
    """Run statements in one transaction."""
    async with transaction(engine) as connection:
        for statement in statements:
            await connection.execute(text(statement))


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        pytest.param("SELECT * FROM not_there", DatabaseUnavailableError, id="no-schema-yet"),
        pytest.param("SELECT 'x'::int", DataRefusedError, id="bad-data"),
        pytest.param("SELECT E'\\\\u0000'::jsonb", DataRefusedError, id="nul"),
        pytest.param("SELECT pg_sleep(9)", DatabaseUnavailableError, id="too-slow"),
        pytest.param(
            "SELECT pg_terminate_backend(pg_backend_pid())", DatabaseUnavailableError, id="killed"
        ),
    ],
)
async def test_faults_are_told_apart(
    fresh_database: str, statement: str, error: type[Exception]
) -> None:
    """What passes is retried, what is refused is not."""
    engine = open_database(fresh_database, deadline_s=1)
    with pytest.raises(error):
        await run(engine, statement)
    await run(engine, "SELECT 1")
    await engine.dispose()


async def test_the_server_notices_a_client_that_is_gone(fresh_database: str) -> None:
    """Else locks and the lead of a machine that lost its power stay for hours."""
    engine = open_database(fresh_database, pool_size=1)
    async with transaction(engine) as connection:
        told = {
            name: (await connection.execute(text(f"SHOW {name}"))).scalar_one()
            for name in ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout")
        }
    await engine.dispose()
    assert told == {
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_user_timeout": "25000",
    }


async def run_together(engine: AsyncEngine, statements: Sequence[str]) -> None:
    """Run statements in one transaction, without waiting for each."""
    async with transaction(engine) as connection, together(connection):
        for statement in statements:
            await connection.execute(text(statement))


async def ask_all(engine: AsyncEngine, statements: Sequence[str]) -> None:
    """Run them as questions."""
    async with transaction(engine) as connection:
        questions = [Query(text(f"{one} RETURNING id"), {}) for one in statements]
        await ask_together(connection, questions)


@pytest.mark.parametrize("run_all", [run_together, ask_all])
@pytest.mark.parametrize("later", [0, 1, 50])
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("INSERT INTO t VALUES (3)", DataRefusedError),
        ("INSERT INTO u VALUES (3)", DatabaseUnavailableError),
    ],
)
async def test_what_goes_together_is_refused_for_its_own_reason(
    fresh_database: str, statement: str, error: type[Exception], later: int, run_all: RunAll
) -> None:
    """However many follow that are not tried; nothing of it is left, and the connection serves."""
    engine = open_database(fresh_database, pool_size=1)
    await run(engine, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (3)")
    statements = ["INSERT INTO t VALUES (1)", statement, *["UPDATE t SET id = id"] * later]
    with pytest.raises(error):
        await run_all(engine, statements)
    async with transaction(engine) as connection:
        [found] = await ask_together(connection, [Query(text("SELECT id FROM t"), {})])
    assert [dict(row) for row in found] == [{"id": 3}]
    await engine.dispose()


async def test_questions_are_answered_in_their_order(fresh_database: str) -> None:
    """Each sees what those before it did."""
    engine = open_database(fresh_database)
    await run(engine, "CREATE TABLE t (id int)")
    add = text("INSERT INTO t VALUES (:id) RETURNING id")
    count = text("SELECT count(*) AS number FROM t WHERE id = ANY(CAST(:ids AS int[]))")
    questions = [Query(add, {"id": 1}), Query(count, {"ids": [1, 2]}), Query(add, {"id": 2})]
    for _ in range(7):  # Often enough for the driver to prepare them.
        async with transaction(engine) as connection:
            answers = await ask_together(connection, [*questions, Query(count, {"ids": [2]})])
            await connection.execute(text("DELETE FROM t"))
        found = [[tuple(row.values()) for row in answer] for answer in answers]
        assert found == [[(1,)], [(1,)], [(2,)], [(1,)]]
    await engine.dispose()


async def test_of_two_that_wait_in_a_circle_one_is_told_to_try_again(fresh_database: str) -> None:
    """A deadlock is a passing fault."""
    engine = open_database(fresh_database)
    await run(engine, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2)")
    barrier = asyncio.Barrier(2)

    async def lock(first: int, second: int) -> None:
        async with transaction(engine) as connection:
            update = text("UPDATE t SET id = id WHERE id = :id")
            await connection.execute(update, {"id": first})
            await barrier.wait()
            await connection.execute(update, {"id": second})

    outcomes = await asyncio.gather(lock(1, 2), lock(2, 1), return_exceptions=True)
    await engine.dispose()
    failed = [outcome for outcome in outcomes if outcome is not None]
    assert [type(outcome) for outcome in failed] == [DatabaseUnavailableError]


async def test_a_database_that_is_away_is_a_passing_fault(fresh_database: str) -> None:
    """The engine connects again by itself."""
    async with Gate(fresh_database) as gate:
        engine = open_database(gate.url, deadline_s=2)
        await run(engine, "SELECT 1")
        await gate.shut()
        for _ in range(2):
            with pytest.raises(DatabaseUnavailableError):
                await run(engine, "SELECT 1")
        await gate.open()
        await run(engine, "SELECT 1")
        await engine.dispose()
