"""Dead letters stay until somebody has looked at them, or as long as a site wants."""

import asyncio
from urllib.parse import urlsplit

import aio_pika
import pytest
from tests.conftest import Bench, call_management

from gatemesh_common.broker import DEAD_LETTERS, declare_topology
from gatemesh_common.messages import DEAD
from gatemesh_common.publisher import Publisher

TTL_S = 0.05

pytestmark = pytest.mark.integration


async def test_a_policy_bounds_how_long_they_are_kept(bench: Bench, vhost_url: str) -> None:
    """As docs/captures.md says, for sites that must not keep words of people."""
    vhost = urlsplit(vhost_url).path.removeprefix("/")
    policy = {
        "pattern": r"^gatemesh\.dead\.letters$",
        "definition": {"message-ttl": int(TTL_S * 1000)},
        "apply-to": "queues",
    }
    async with Publisher(vhost_url, "test") as publisher, asyncio.timeout(60):
        await declare_topology(await publisher.channel())
        assert await is_kept(publisher)
        call_management(bench, "PUT", f"policies/{vhost}/expiry", policy)
        # The broker applies a policy in its own time.
        while await is_kept(publisher):
            pass


async def is_kept(publisher: Publisher) -> bool:
    """Tell whether a dead letter is still there once its time is over."""
    channel = await publisher.channel()
    await publisher.publish_raw(aio_pika.Message(b"{}"), DEAD, "some.queue", mandatory=True)
    await asyncio.sleep(2 * TTL_S)
    queue = await channel.get_queue(DEAD_LETTERS, ensure=False)
    return await queue.get(no_ack=True, fail=False) is not None
