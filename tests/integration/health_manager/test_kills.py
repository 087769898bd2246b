"""The manager dies at the worst moments; the broker or the database goes away: nothing is lost."""

import asyncio
import signal

import psycopg
import pytest

from gatemesh_common.broker import DEAD_LETTERS, VERDICTS
from gatemesh_mesh.postgres import plain_url

from ..gate import Gate  # noqa: TID252 (shared by the integration tests)
from .conftest import DYING, Site, failures

pytestmark = pytest.mark.integration

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


async def nothing_lost_nothing_twice(site: Site) -> None:
    """Check what six failures must have led to, once."""
    await site.until_state("engine-0", "draining")
    await site.until(site.is_read)
    assert site.value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'") == 6
    assert site.rows("SELECT condition, status FROM incidents_v1") == [("A", "open")]
    drains = "SELECT count(*) FROM transitions WHERE after_state = 'draining'"
    assert site.value(drains) == 1
    await site.until_value("SELECT count(*) FROM outbox", 0)
    assert await site.depth(DEAD_LETTERS) == 0


async def test_killed_before_the_commit(site: Site) -> None:
    """The transaction never was; the messages come again."""
    manager = await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    await site.until_value("SELECT count(*) FROM outbox", 0)
    with psycopg.connect(plain_url(site.database_url)) as holder:
        holder.execute("SELECT * FROM pools FOR UPDATE")
        for each in failures("engine-0", 6):
            await site.publisher.publish(each)
        await site.until(lambda: waits(site))
        manager.send_signal(signal.SIGKILL)
        manager.wait(30)
    assert site.value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'") == 0
    await site.start_ready()
    await nothing_lost_nothing_twice(site)


async def waits(site: Site) -> bool:
    """Tell whether a transaction of the manager waits for the lock."""
    return bool(site.value(WAITING) >= 1)


async def test_killed_after_the_commit_and_before_the_acknowledgement(site: Site) -> None:
    """The messages come again and change nothing."""
    manager = await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    manager.terminate()
    manager.wait(30)
    for each in failures("engine-0", 6):
        await site.publisher.publish(each)
    dying = site.start(str(DYING))
    assert await asyncio.to_thread(dying.wait, 60) == -signal.SIGKILL
    assert site.value("SELECT state FROM instances WHERE instance_id = 'engine-0'") == "draining"
    assert await site.depth(VERDICTS.name) > 0
    await site.start_ready()
    await nothing_lost_nothing_twice(site)


async def test_the_database_goes_away_for_a_while(site: Site) -> None:
    """Messages wait unacknowledged; nothing ends in the dead letters."""
    async with Gate(site.database_url) as gate:
        await site.start_ready(GATEMESH_DATABASE_URL=gate.url)
        await site.bring_up("engine-0", "engine-1")
        await gate.shut()
        for each in failures("engine-0", 6):
            await site.publisher.publish(each)
        await site.until(site.is_read)
        await gate.open()
        await nothing_lost_nothing_twice(site)


async def test_the_broker_goes_away_for_a_while(site: Site) -> None:
    """The manager connects again and goes on where it was."""
    async with Gate(site.amqp_url) as gate:
        manager = await site.start_ready(GATEMESH_AMQP_URL=gate.url)
        await site.bring_up("engine-0", "engine-1")
        await gate.shut()
        for each in failures("engine-0", 6):
            await site.publisher.publish(each)
        await gate.open()
        await nothing_lost_nothing_twice(site)
        assert manager.poll() is None


async def test_a_start_waits_for_broker_and_database(site: Site) -> None:
    """Whoever starts first waits; nobody crashes in a loop."""
    async with Gate(site.amqp_url) as broker, Gate(site.database_url) as database:
        await broker.shut()
        await database.shut()
        manager = site.start(GATEMESH_AMQP_URL=broker.url, GATEMESH_DATABASE_URL=database.url)
        await database.open()
        await broker.open()
        await site.until(site.is_ready)
        assert manager.poll() is None


async def test_two_managers_share_the_work(site: Site) -> None:
    """One ticks, both decide; when the one that ticks is killed, the other takes over."""
    first = await site.start_ready()
    other = site.start(GATEMESH_HEALTH_MANAGER_ADMIN_PORT="0")
    await site.bring_up("engine-0", "engine-1")
    for each in failures("engine-0", 6):
        await site.publisher.publish(each)
    await nothing_lost_nothing_twice(site)
    holders = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    await site.until_value(holders, 1)
    first.kill()
    first.wait(30)
    await site.until_value(holders, 1)
    due = "UPDATE instances SET flight_due_at = now() WHERE instance_id = 'engine-0' RETURNING 1"
    site.rows(due)
    await site.until_value(
        "SELECT count(*) FROM commands WHERE instance_id = 'engine-0' AND status = 'expired'", 1
    )
    assert other.poll() is None


async def test_a_deleted_queue_ends_the_process(site: Site) -> None:
    """The supervisor starts it anew, and the new one declares the queue again."""
    manager = await site.start_ready()
    channel = await site.publisher.channel()
    await channel.queue_delete(VERDICTS.name)
    assert await asyncio.to_thread(manager.wait, 60) == 70
    await site.start_ready()
    assert await site.depth(VERDICTS.name) == 0
