"""Real brokers and databases for the parts that every service shares."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel

from gatemesh_common.broker import DEAD_LETTERS, declare_topology
from gatemesh_common.publisher import Publisher

DEADLINE_S = 30.0


@pytest.fixture
async def publisher(vhost_url: str) -> AsyncIterator[Publisher]:
    """Give a publisher in a virtual host with our topology."""
    async with Publisher(vhost_url, "test", deadline_s=10) as publisher:
        await declare_topology(await publisher.channel())
        yield publisher


@pytest.fixture
async def channel(vhost_url: str) -> AsyncIterator[AbstractChannel]:
    """Give a channel of the test's own."""
    connection = await aio_pika.connect(vhost_url)
    async with connection:
        yield await connection.channel()


async def take(
    channel: AbstractChannel, queue: str = DEAD_LETTERS
) -> aio_pika.abc.AbstractIncomingMessage:
    """Return the next message of a queue, as soon as there is one."""
    declared = await channel.declare_queue(queue, passive=True)
    async with asyncio.timeout(DEADLINE_S):
        async with declared.iterator(no_ack=True) as messages:
            async for message in messages:
                return message
    raise AssertionError("the iterator ended")


async def depth(channel: AbstractChannel, queue: str) -> int:
    """Return how many messages of a queue are ready."""
    declared = await channel.declare_queue(queue, passive=True)
    return declared.declaration_result.message_count or 0


async def until(true: Callable[[], Awaitable[bool]], deadline_s: float = DEADLINE_S) -> None:
    """Return as soon as something is so."""
    async with asyncio.timeout(deadline_s):
        while not await true():  # noqa: ASYNC110 (a state outside this process)
            await asyncio.sleep(0.05)
