"""Verdicts in shards on a real broker: one reader each, handed over, nothing lost or doubled."""

import asyncio
import subprocess

import pytest

from gatemesh_common.broker import DEAD_LETTERS, VERDICTS, shard_of, shard_queue
from gatemesh_common.message import bucket_of
from gatemesh_common.messages import ALERTS
from gatemesh_health_manager.shards import declare_shards

from .conftest import Site, verdict

pytestmark = pytest.mark.integration

SHARDS = 4
SHARDED = {"GATEMESH_HEALTH_MANAGER_VERDICT_SHARDS": str(SHARDS)}
NAMES = [f"engine-{n}" for n in range(12)]
OWNERS = (
    "SELECT count(DISTINCT pid), count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND mode = 'ExclusiveLock' AND objsubid = 2 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
# Passed ones decide nothing, so that every instance goes on being judged.
STORED = "SELECT count(*), count(DISTINCT message_id) FROM verdicts WHERE outcome = 'passed'"


async def publish(site: Site, count: int, start: int = 0) -> None:
    """Publish passed verdicts about every instance in turn."""
    for number in range(start, start + count):
        name = NAMES[number % len(NAMES)]
        said = verdict(name, outcome="passed", request_id=f"r{number}", check_level="L4")
        await site.publisher.publish(said)


async def until_rows(site: Site, query: str, wanted: tuple[int, ...]) -> None:
    """Return as soon as a query has one row of these values."""

    async def true() -> bool:
        return bool(site.rows(query) == [wanted])

    try:
        await site.until(true)
    except TimeoutError:
        pytest.fail(f"{query}: {site.rows(query)}, wanted {wanted}")


async def all_read(site: Site) -> bool:
    """Tell whether nothing waits in any queue of verdicts."""
    queues = [VERDICTS.name, *(shard_queue(n).name for n in range(SHARDS))]
    return not any([await site.depth(queue) for queue in queues])


async def test_two_managers_share_four_shards_and_one_dies(site: Site) -> None:
    """The other takes over; each verdict is applied once, in its instance's order."""
    first = await site.start_ready(**SHARDED)
    second = site.start(GATEMESH_HEALTH_MANAGER_ADMIN_PORT="0", **SHARDED)
    await until_rows(site, OWNERS, (2, SHARDS))
    assert {shard_of(bucket_of(name), SHARDS) for name in NAMES} == set(range(SHARDS))
    publishing = asyncio.create_task(publish(site, 240))
    await site.until(lambda: more_than(site, 60))
    first.kill()
    first.wait(30)
    await publishing
    await publish(site, 60, start=240)
    await until_rows(site, STORED, (300, 300))
    await until_rows(site, OWNERS, (1, SHARDS))
    await site.until(lambda: all_read(site))
    assert await site.depth(DEAD_LETTERS) == 0
    assert second.poll() is None
    swapped = (
        'SELECT count(*) FROM (SELECT "timestamp" < lag("timestamp") OVER '
        "(PARTITION BY instance_id ORDER BY id) AS is_late FROM verdicts) AS v WHERE is_late"
    )
    # What the dead one had taken comes again behind what the broker had not yet delivered.
    assert site.value(swapped) <= len(NAMES)


async def more_than(site: Site, count: int) -> bool:
    """Tell whether so many verdicts are stored."""
    return bool(site.value("SELECT count(*) FROM verdicts") > count)


async def ended(process: subprocess.Popen[bytes]) -> None:
    """Have a manager stop in order."""
    process.terminate()
    assert await asyncio.to_thread(process.wait, 60) == 0


async def test_more_and_fewer_shards_lose_nothing(site: Site) -> None:
    """From one to four and back: what waits in old queues is read."""
    await publish(site, 24)
    manager = await site.start_ready(**SHARDED)
    await publish(site, 24, start=24)
    await until_rows(site, STORED, (48, 48))
    await ended(manager)
    # They wait in four queues that the next manager has no more use for.
    await publish(site, 24, start=48)
    assert await site.depth(VERDICTS.name) == 0
    manager = await site.start_ready()
    await publish(site, 24, start=72)
    await until_rows(site, STORED, (96, 96))
    await ended(manager)
    await publish(site, 12, start=96)
    assert await site.depth(VERDICTS.name) == 12


async def test_who_names_no_bucket_is_read_too(site: Site) -> None:
    """People, and agents of the release before; a binding of then doubles nothing."""
    await site.start_ready(**SHARDED)
    await site.alert(verdict("engine-0", outcome="passed").model_dump_json().encode())
    channel = await site.publisher.channel()
    queue = await channel.get_queue(VERDICTS.name)
    await queue.bind(ALERTS, routing_key="#")
    await publish(site, 12)
    await until_rows(site, STORED, (13, 13))
    await site.until(lambda: all_read(site))
    await until_rows(site, STORED, (13, 13))
    assert await site.depth(DEAD_LETTERS) == 0


async def test_a_shard_whose_queue_was_deleted_comes_back(site: Site) -> None:
    """The manager declares it again and goes on; meanwhile its verdicts go to the queue of all."""
    manager = await site.start_ready(**SHARDED)
    await until_rows(site, OWNERS, (1, SHARDS))
    channel = await site.publisher.channel()
    shard = shard_of(bucket_of(NAMES[0]), SHARDS)
    await channel.queue_delete(shard_queue(shard).name)
    await publish(site, 24)
    await until_rows(site, STORED, (24, 24))
    await until_rows(site, OWNERS, (1, SHARDS))
    assert manager.poll() is None


async def test_declaring_twice_changes_nothing(site: Site) -> None:
    """Managers start at once; what the broker has is what is asked for."""
    url = site.amqp_url
    both = await asyncio.gather(declare_shards(url, SHARDS), declare_shards(url, SHARDS))
    assert set(both) == {SHARDS}
    assert await declare_shards(url, 2) == SHARDS
    await publish(site, 24)
    depths = [await site.depth(shard_queue(n).name) for n in range(SHARDS)]
    assert sum(depths[:2]) == 24
    assert depths[2:] == [0, 0]
    assert await declare_shards(url, 1) == SHARDS
    await publish(site, 12, start=24)
    assert await site.depth(VERDICTS.name) == 12
