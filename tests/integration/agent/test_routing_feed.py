"""Agents route by the manager's newest table, with and without a broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aio_pika.abc import AbstractQueue
from tests.integration.agent.parts import serving, settings_for, until
from tests.integration.gate import Gate

from gatemesh_agent.service import build_agent
from gatemesh_common.broker import declare_topology
from gatemesh_common.messages import (
    EVENTS,
    InstanceState,
    RoutedInstance,
    RoutingApplied,
    RoutingTable,
)
from gatemesh_common.publisher import Publisher

pytestmark = pytest.mark.integration

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def table(version: int, *names: str, pool: str = "default", at: datetime = NOON) -> RoutingTable:
    """Return a table with these instances in rotation."""
    instances = tuple(
        RoutedInstance(
            instance_id=name, base_url=f"http://{name}", state=InstanceState.HEALTHY, incarnation=1
        )
        for name in names
    )
    return RoutingTable(timestamp=at, pool=pool, version=version, instances=instances)


class Mesh:
    """The manager's side: tells tables, hears confirmations."""

    def __init__(self, publisher: Publisher, confirmations: AbstractQueue) -> None:
        self._publisher = publisher
        self._confirmations = confirmations

    async def tell(self, told: RoutingTable, expect: int) -> None:
        """Tell a table until an agent confirms the version expected."""
        async with asyncio.timeout(30):
            while (applied := await self._next()) is None or applied.version != expect:
                await self._publisher.publish(told)
                await asyncio.sleep(0.05)
        assert applied.agent_id == "agent-0"

    async def _next(self) -> RoutingApplied | None:
        message = await self._confirmations.get(no_ack=True, fail=False)
        return None if message is None else RoutingApplied.model_validate_json(message.body)


@asynccontextmanager
async def mesh(url: str) -> AsyncIterator[Mesh]:
    """Stand where the manager stands."""
    async with Publisher(url, "test") as publisher:
        channel = await publisher.channel()
        await declare_topology(channel)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(EVENTS, "applied.v1.#")
        yield Mesh(publisher, queue)


async def test_the_newest_table_counts(tmp_path: Path, vhost_url: str) -> None:
    """Older ones and other pools' change nothing; a numbering that began anew is followed."""
    settings = settings_for(tmp_path, {"boot": "http://boot"}, GATEMESH_AMQP_URL=vhost_url)
    async with mesh(vhost_url) as manager, build_agent(settings) as agent:
        feed = asyncio.create_task(agent.feed.run(vhost_url))
        known = [one.instance_id for one in agent.router.view.instances]
        assert known == ["boot"]
        await manager.tell(table(5, "a", "b"), expect=5)
        await manager.tell(table(4, "old"), expect=5)
        assert {one.instance_id for one in agent.router.view.instances} == {"a", "b"}
        later = NOON + timedelta(minutes=1)
        await manager.tell(table(1, "c", at=later), expect=1)
        assert agent.router.view.find("c") is not None
        feed.cancel()
        await asyncio.gather(feed, return_exceptions=True)


async def test_a_message_that_is_no_table_is_refused(tmp_path: Path) -> None:
    """Routing goes on as before."""
    settings = settings_for(tmp_path, {"boot": "http://boot"})
    async with build_agent(settings) as agent:
        await agent.feed.receive(b"no json")
        await agent.feed.receive(b'{"pool":"default","version":0}')
        await agent.feed.receive(table(3, "x", pool="other").model_dump_json().encode())
        assert agent.router.view.version == 0


async def test_a_restarted_agent_serves_by_its_last_table(tmp_path: Path) -> None:
    """Without a broker; the settings' instances no longer count."""
    settings = settings_for(tmp_path, {"boot": "http://boot"})
    async with build_agent(settings) as agent:
        agent.feed.apply(table(7, "a"))
    async with build_agent(settings) as again:
        assert again.router.view.version == 7
        assert [one.instance_id for one in again.router.view.instances] == ["a"]


async def test_a_sidecar_follows_only_its_instance(tmp_path: Path) -> None:
    """Out of rotation there means 503 here."""
    settings = settings_for(tmp_path, {"b": "http://b"}, mode="sidecar")
    async with serving(settings) as setup:
        setup.agent.feed.apply(table(1, "a", "b"))
        assert [one.instance_id for one in setup.agent.router.view.instances] == ["b"]
        setup.agent.feed.apply(table(2, "a"))
        assert (await setup.post("/v1/chat/completions", {"messages": []})).status == 503


async def test_the_feed_comes_back_with_the_broker(tmp_path: Path, vhost_url: str) -> None:
    """A lost connection is made anew, and the agent serves on meanwhile."""
    async with mesh(vhost_url) as manager, Gate(vhost_url) as gate:
        settings = settings_for(tmp_path, {}, GATEMESH_AMQP_URL=gate.url)
        async with build_agent(settings) as agent:
            feed = asyncio.create_task(agent.feed.run(gate.url))
            await manager.tell(table(1, "a"), expect=1)
            await gate.shut()
            assert agent.router.pick(0.0) is not None
            await gate.open()
            await manager.tell(table(2, "b"), expect=2)
            await until(lambda: agent.router.view.version == 2)
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)
