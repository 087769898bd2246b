"""The notifier as a process, between a real broker and a real webhook."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from aio_pika.exceptions import ChannelNotFoundEntity
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.unit.notifier.parts import brake, incident, verdict

from gatemesh_common.broker import DEAD_LETTERS, declare_topology
from gatemesh_common.publisher import Publisher

pytestmark = pytest.mark.integration

SECRET = "s3cret-token"
QUEUES = ("notifier.incidents", "notifier.brakes", "notifier.states")
DEADLINE_S = 60
SLOW = {"GATEMESH_NOTIFIER_GATHER_S": "10", "GATEMESH_NOTIFIER_QUIET_GATHER_S": "10"}
"""Three queues are read side by side: on a busy machine some time passes between them."""


@dataclass
class Hook:
    """A webhook that takes or refuses, as it is told."""

    takes: bool = True
    bodies: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    url: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        """Keep what comes."""
        self.bodies.put_nowait(await request.json())
        return web.Response(status=200 if self.takes else 503)

    async def next(self) -> tuple[str, str, list[str]]:
        """Return type, title and lines of the next message."""
        body = await asyncio.wait_for(self.bodies.get(), DEADLINE_S)
        return body["type"], body["title"], body["message"].splitlines()


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    """A webhook on this machine."""
    found = Hook()
    application = web.Application()
    application.router.add_post(f"/{SECRET}", found.answer)
    async with TestServer(application) as server:
        found.url = f"json://user:{SECRET}@127.0.0.1:{server.port}/{SECRET}"
        yield found


@pytest.fixture
async def publisher(vhost_url: str) -> AsyncIterator[Publisher]:
    """Publishes as the manager does."""
    async with Publisher(vhost_url, "test") as found:
        await declare_topology(await found.channel())
        yield found


@dataclass
class Site:
    """Starts notifiers at one broker, for one webhook, with one state folder."""

    url: str
    hook: Hook
    folder: Path
    publisher: Publisher

    @asynccontextmanager
    async def running(self, **settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Have a notifier run that reads its queues; killed at the end."""
        log = (self.folder / "log").open("ab")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gatemesh_notifier"),
            env={
                **os.environ,
                "GATEMESH_AMQP_URL": self.url,
                "GATEMESH_LOG_LEVEL": "DEBUG",
                "GATEMESH_NOTIFIER_URLS": self.hook.url,
                "GATEMESH_NOTIFIER_STATE_DIR": str(self.folder / "state"),
                "GATEMESH_NOTIFIER_ADMIN_PORT": "0",
                "GATEMESH_NOTIFIER_GATHER_S": "0.5",
                "GATEMESH_NOTIFIER_QUIET_GATHER_S": "0.5",
                **settings,
            },
            stdout=log,
            stderr=log,
        )
        try:
            for queue in QUEUES:
                await self.until(queue, 1, readers=True)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            log.close()

    async def counts(self, name: str, *, readers: bool = False) -> int:
        """Return how many messages of a queue are ready, or how many read it."""
        try:
            channel = await self.publisher.channel()
            declared = (await channel.declare_queue(name, passive=True)).declaration_result
        except ChannelNotFoundEntity:
            return 0
        return int((declared.consumer_count if readers else declared.message_count) or 0)

    async def until(self, name: str, count: int, *, readers: bool = False) -> None:
        """Wait until so many messages of a queue are ready, or so many read it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if await self.counts(name, readers=readers) == count:
                    return
                await asyncio.sleep(0.05)


@pytest.fixture
async def site(
    vhost_url: str, hook: Hook, tmp_path: Path, publisher: Publisher
) -> AsyncIterator[Site]:
    """A place for notifiers; whatever they did, no log of theirs names the address."""
    yield Site(vhost_url, hook, tmp_path, publisher)
    text = (tmp_path / "log").read_text()
    assert "notifier_started" in text
    assert SECRET not in text


async def test_people_are_told_in_groups_and_quietly_of_the_end(site: Site) -> None:
    """One message for a pool, one for its end, in the language that was asked for."""
    async with site.running(GATEMESH_NOTIFIER_LANGUAGE="zh", **SLOW) as process:
        for event in (incident(), brake(), verdict(instance_id="engine-1")):
            await site.publisher.publish(event)
        kind, title, lines = await site.hook.next()
        assert (kind, title) == ("failure", "[gatemesh] 资源池 chat 需要人工处理（3）")
        assert lines[0].startswith("全局制动已触发")
        assert sum("engine-0" in line for line in lines) == 1
        for event in (incident(status="resolved"), brake(status="reset")):
            await site.publisher.publish(event)
        kind, title, lines = await site.hook.next()
        assert (kind, len(lines)) == ("success", 2)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0
    assert site.hook.bodies.empty()
    assert [await site.counts(queue) for queue in QUEUES] == [0, 0, 0]


async def test_killed_while_nobody_answers_and_told_once_after_that(site: Site) -> None:
    """The event is redelivered; once it is told, the same id says nothing any more."""
    site.hook.takes = False
    event = incident()
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(site.running())
        await site.publisher.publish(event)
        await site.hook.next()
        process.kill()
        await process.wait()
        await site.until("notifier.incidents", 1)
    site.hook.takes = True
    while not site.hook.bodies.empty():
        site.hook.bodies.get_nowait()
    async with site.running() as process:
        assert (await site.hook.next())[1] == "[gatemesh] pool chat: trouble, the mesh acts (1)"
        await site.publisher.publish(event)
        # What was sent is written down before the end; killed here, it might not be.
        process.terminate()
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0
    async with site.running():
        await site.publisher.publish(event)
        await site.publisher.publish(incident(incident_id="i-2"))
        kind, _, lines = await site.hook.next()
        assert (kind, len(lines)) == ("warning", 1)
        assert "i-2" in lines[0]
    assert site.hook.bodies.empty()


async def test_what_cannot_be_delivered_is_kept_with_the_targets_name(site: Site) -> None:
    """Operators find it among the dead letters, and can publish it again."""
    site.hook.takes = False
    async with site.running(GATEMESH_NOTIFIER_GIVE_UP_AFTER_S="0"):
        await site.publisher.publish(event := incident())
        await site.until(DEAD_LETTERS, 1)
        channel = await site.publisher.channel()
        queue = await channel.declare_queue(DEAD_LETTERS, passive=True)
        letter = await queue.get()
        assert letter is not None
        assert letter.message_id == event.message_id
        assert str(letter.headers["x-gatemesh-reason"]).startswith("not delivered to json-1:")
        assert SECRET not in str(letter.headers)
        site.hook.takes = True
        again = aio_pika.Message(
            letter.body, content_type=letter.content_type, message_id=letter.message_id
        )
        await site.publisher.publish_raw(again, event.exchange, event.key(), mandatory=True)
        refused, taken = [await site.hook.next() for _ in range(2)]
        assert refused == taken
