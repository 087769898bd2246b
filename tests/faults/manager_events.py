"""What may happen to the health manager and its database."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import LiteralString

import psycopg
from tests.faults.acting import (
    VICTIM,
    absent,
    accuse,
    ask_for,
    has_killed_itself,
    is_repaired,
    kill,
    running,
    slow_streams,
)
from tests.faults.scenario import Play

from gatemesh_common.messages import InstanceObserved
from gatemesh_mesh.postgres import plain_url

MANAGER = "health_manager"
DYING = Path(__file__).parents[1] / "integration" / MANAGER / "dying_manager.py"
WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""
END_SESSIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
STRICTER: LiteralString = """DO $$ BEGIN EXECUTE format(
    'ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(),
    'repeatable read'); END $$"""
AS_BEFORE: LiteralString = """DO $$ BEGIN EXECUTE format(
    'ALTER DATABASE %I RESET default_transaction_isolation', current_database()); END $$"""
UNDONE = "SerializationFailure 40001"
DATABASE_AWAY_S = 60.0
ENDED_SESSIONS = 20
FULL_POOL = 6
"""Transactions that wait for one lock; of the manager's 8 connections two are for other things."""
OLD_NEWS = 40


@contextmanager
def holding_pools(it: Play) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """Hold a lock that every decision needs."""
    with psycopg.connect(plain_url(it.site.fleet.plan.addresses.database_url)) as holder:
        holder.execute("SELECT * FROM pools FOR UPDATE")
        yield holder


async def kill_before_the_commit(it: Play) -> None:
    """The manager dies in the middle of a transaction."""
    with holding_pools(it):
        await it.reach(lambda: it.count(WAITING) >= 1, "a transaction under way")
        kill(it, MANAGER)
    await it.is_cured()


async def kill_after_the_commit(it: Play) -> None:
    """The manager dies between the commit of a decision and the acknowledgement."""
    async with absent(it, MANAGER):
        with running(it, MANAGER, str(DYING)) as dying:
            await accuse(it)
            await has_killed_itself(dying)
    await it.is_cured()
    await is_repaired(it)


async def run_two(it: Play) -> None:
    """Two managers decide at once, and one of them dies in the middle of an incident."""
    with running(it, MANAGER, GATEMESH_HEALTH_MANAGER_ADMIN_PORT="0"):
        await it.flows()
        await accuse(it)
        await it.reach(
            lambda: it.site.fleet.reached(VICTIM, "draining", it.since), f"{VICTIM} draining"
        )
        kill(it, MANAGER)
        await is_repaired(it)


async def kill_database(it: Play) -> None:
    """The database dies and is started again."""
    servers = it.site.servers
    await asyncio.to_thread(servers.kill_database)
    await asyncio.to_thread(servers.start_database)
    await it.is_cured()


async def lose_database(it: Play) -> None:
    """The database dies and stays away for a minute."""
    servers = it.site.servers
    await asyncio.to_thread(servers.kill_database)
    await asyncio.sleep(DATABASE_AWAY_S)
    await asyncio.to_thread(servers.start_database)
    await it.is_cured()


async def end_sessions(it: Play) -> None:
    """The server ends the sessions of everybody, again and again."""
    for _ in range(ENDED_SESSIONS):
        administer(it, END_SESSIONS)
        await asyncio.sleep(0.1)
    await it.is_cured()


async def fill_the_pool(it: Play) -> None:
    """Every connection of the manager waits for a lock, longer than its deadline."""
    before = retries(it)
    with holding_pools(it):
        await it.site.fleet.publish(*(old_news(it) for _ in range(OLD_NEWS)))
        await it.reach(lambda: it.count(WAITING) >= FULL_POOL, "a full pool")
        await it.reach(lambda: retries(it) > before, "a deadline that passed")
    await it.is_cured()


def old_news(it: Play) -> InstanceObserved:
    """Return an observation that changes nothing, since later ones are known."""
    return InstanceObserved(
        timestamp=it.since - timedelta(hours=1),
        instance_id="engine-0",
        running=True,
        life_id="an earlier one",
        base_url="http://127.0.0.1:1",
    )


async def make_deadlocks(it: Play) -> None:
    """Decisions are chosen as the victims of deadlocks."""
    before = retries(it)
    async with asyncio.timeout(60):
        while retries(it) == before:
            await asyncio.to_thread(cross, it)
    await it.is_cured()


def cross(it: Play) -> None:
    """Take locks in the order opposite to the manager's, and be the one who survives."""
    url = plain_url(it.site.fleet.plan.addresses.database_url)
    with suppress(psycopg.errors.LockNotAvailable), psycopg.connect(url) as crossing:
        crossing.execute("SET deadlock_timeout = '60s'")
        crossing.execute("SET lock_timeout = '5s'")
        crossing.execute("SELECT * FROM instances FOR UPDATE")
        crossing.execute("SELECT pg_sleep(0.3)")
        crossing.execute("SELECT * FROM pools FOR UPDATE")


async def fail_serialization(it: Play) -> None:
    """Transactions that overlap with another one are undone, as the strictest levels do."""
    async with stricter_transactions(it):
        async with asyncio.timeout(60):
            while UNDONE not in log_of(it, MANAGER):
                await asyncio.to_thread(overlap, it)
        await it.is_cured()
    await it.is_cured()


@asynccontextmanager
async def stricter_transactions(it: Play) -> AsyncIterator[None]:
    """Have every new session see one moment only in each of its transactions."""
    administer(it, STRICTER, END_SESSIONS)
    try:
        yield
    finally:
        administer(it, AS_BEFORE, END_SESSIONS)


def administer(it: Play, *statements: LiteralString) -> None:
    """Do something as the database's administrator, outside of any transaction."""
    url = plain_url(it.site.fleet.plan.addresses.database_url)
    with psycopg.connect(url, autocommit=True) as administrator:
        for statement in statements:
            administrator.execute(statement)


def overlap(it: Play) -> None:
    """Write what every decision locks, while decisions are being made."""
    url = plain_url(it.site.fleet.plan.addresses.database_url)
    with psycopg.connect(url) as writer:
        writer.execute("UPDATE pools SET pool = pool")
        writer.execute("SELECT pg_sleep(0.3)")


def log_of(it: Play, service: str) -> str:
    """Return what a service has logged since the stack was started."""
    return (it.site.plan.folder.logs / f"{service}.log").read_text()


def retries(it: Play) -> float:
    """Return how many passing faults of the database the manager has retried."""
    name = 'gatemesh_retried_total{error="DatabaseUnavailableError"}'
    lines = [line for line in it.site.metrics(MANAGER) if line.startswith(name)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def pause_during_a_drain(it: Play) -> None:
    """An operator pauses the pool while an instance drains: it drains, and nothing follows."""
    async with slow_streams(it) as whole:
        await pause_and_resume(it)
        assert await whole()
    await is_repaired(it)


async def pause_and_resume(it: Play) -> None:
    """Pause between the beginning and the end of a drain; resume when it is over."""
    await accuse(it)
    await it.reach(
        lambda: it.site.fleet.reached(VICTIM, "draining", it.since), f"{VICTIM} draining"
    )
    await ask_for(it, "pause")
    drained = """SELECT count(*) FROM commands_v1 WHERE issued_at >= %(since)s
        AND action = 'drain' AND ended_at IS NOT NULL"""
    await it.reach(lambda: it.count(drained) == 1, "the drain has ended")
    await it.flows(events=60)
    assert "restart" not in it.commands()
    await ask_for(it, "resume")
