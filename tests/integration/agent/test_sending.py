"""What the agent tells the mesh arrives, whatever happens to the broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import aio_pika
import pytest
from tests.integration.agent.parts import until
from tests.integration.gate import Gate

from gatemesh_agent.sending import Sender
from gatemesh_agent.spool import Spool
from gatemesh_common.broker import VERDICTS, declare_topology
from gatemesh_common.messages import ALERTS, CheckLevel, Verdict
from gatemesh_common.publisher import Publisher

pytestmark = pytest.mark.integration

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def verdict(number: int) -> Verdict:
    """Return a failure with its number as id."""
    return Verdict(
        message_id=f"v-{number}",
        timestamp=NOON,
        instance_id="e",
        request_id="r",
        check_level=CheckLevel.L1,
    )


@asynccontextmanager
async def sending(folder: Path, url: str) -> AsyncIterator[tuple[Sender, Spool]]:
    """Run a sender over a spool."""
    spool = Spool(folder / "spool.sqlite3", "agent", 1000)
    async with Publisher(url, "agent", deadline_s=2.0) as publisher:
        sender = Sender(spool, publisher, lambda: 0.0)
        task = asyncio.create_task(sender.run())
        try:
            yield sender, spool
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            spool.close()


async def declare(url: str) -> None:
    """Make exchanges and queues."""
    async with Publisher(url, "test") as publisher:
        await declare_topology(await publisher.channel())


async def received(url: str, count: int) -> list[str | None]:
    """Return the ids of at least `count` verdicts, in their order."""
    found: list[str | None] = []
    connection = await aio_pika.connect(url)
    async with connection, asyncio.timeout(30):
        queue = await (await connection.channel()).get_queue(VERDICTS.name)
        while len(set(found)) < count:
            message = await queue.get(no_ack=True, fail=False)
            if message is None:
                await asyncio.sleep(0.02)
            else:
                found.append(message.message_id)
    return found


async def test_what_is_put_arrives_once_and_is_forgotten(tmp_path: Path, vhost_url: str) -> None:
    """In its order, and with an empty spool at the end."""
    await declare(vhost_url)
    async with sending(tmp_path, vhost_url) as (sender, spool):
        for number in range(350):
            sender.put(verdict(number))
        await until(lambda: spool.depth == 0)
    assert await received(vhost_url, 350) == [f"v-{number}" for number in range(350)]


async def test_a_broker_that_is_away_loses_nothing(tmp_path: Path, vhost_url: str) -> None:
    """What was put meanwhile is sent when it is back."""
    await declare(vhost_url)
    async with Gate(vhost_url) as gate, sending(tmp_path, gate.url) as (sender, spool):
        sender.put(verdict(0))
        await until(lambda: spool.depth == 0)
        await gate.shut()
        for number in range(1, 151):
            sender.put(verdict(number))
        assert spool.depth == 150
        await gate.open()
        await until(lambda: spool.depth == 0)
    assert set(await received(vhost_url, 151)) == {f"v-{number}" for number in range(151)}


async def test_what_the_broker_cannot_route_is_kept(tmp_path: Path, vhost_url: str) -> None:
    """It is tried again later, and does not hold up the rest."""
    async with Publisher(vhost_url, "test") as publisher:
        channel = await publisher.channel()
        await channel.declare_exchange(ALERTS, aio_pika.ExchangeType.TOPIC, durable=True)
    async with sending(tmp_path, vhost_url) as (sender, spool):
        sender.put(verdict(0))
        await until(lambda: spool.due(0.0, 10) == [])
        assert spool.depth == 1
        assert len(spool.due(30.0, 10)) == 1


async def test_a_drain_sends_what_it_can_and_ends(tmp_path: Path, vhost_url: str) -> None:
    """An agent that stops does not wait for a broker that is away."""
    await declare(vhost_url)
    spool = Spool(tmp_path / "spool.sqlite3", "agent", 1000)
    async with Publisher(vhost_url, "agent") as publisher:
        sender = Sender(spool, publisher, lambda: 0.0)
        sender.put(verdict(0))
        await sender.drain(10.0)
        assert spool.depth == 0
    async with Publisher("amqp://a:b@127.0.0.1:1/", "agent") as nobody:
        sender = Sender(spool, nobody, lambda: 0.0)
        sender.put(verdict(1))
        await asyncio.wait_for(sender.drain(0.5), 5.0)
        assert spool.depth == 1
    spool.close()
