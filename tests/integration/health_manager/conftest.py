"""The manager as a process between a real broker and a real database."""

import asyncio
import json
import os
import random
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aio_pika
import psycopg
import pytest
from aio_pika.abc import AbstractIncomingMessage
from tests.history import assert_replay_agrees

from gatemesh_common.broker import COMMANDS, DEAD_LETTERS, VERDICTS, declare_topology
from gatemesh_common.database import open_database
from gatemesh_common.messages import ALERTS, CheckLevel, InstanceObserved, Verdict
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import Policy
from gatemesh_mesh.ports import choose_ports
from gatemesh_mesh.postgres import plain_url

from .desk import Desk

DEADLINE_S = 40.0
DYING = Path(__file__).parent / "dying_manager.py"


class Site:
    """A broker, a database, and managers as operators run them."""

    def __init__(self, amqp_url: str, database_url: str, publisher: Publisher) -> None:
        self.amqp_url = amqp_url
        self.database_url = database_url
        self.publisher = publisher
        self.admin_port = choose_ports(["admin"], random.Random())["admin"]
        self._running: list[subprocess.Popen[bytes]] = []
        self.changed_by_hand = False

    # The manager

    def start(self, *program: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start a manager, or another program with a manager's settings."""
        environment = {
            **os.environ,
            "GATEMESH_AMQP_URL": self.amqp_url,
            "GATEMESH_DATABASE_URL": self.database_url,
            "GATEMESH_HEALTH_MANAGER_ADMIN_PORT": str(self.admin_port),
            "GATEMESH_HEALTH_MANAGER_TICK_S": "0.2",
            "GATEMESH_HEALTH_MANAGER_DATABASE_DEADLINE_S": "3",
            **settings,
        }
        arguments = program or ("-m", "gatemesh_health_manager")
        process = subprocess.Popen([sys.executable, *arguments], env=environment)
        self._running.append(process)
        return process

    async def start_ready(self, **settings: str) -> subprocess.Popen[bytes]:
        """Start a manager and wait until it reads its queues."""
        process = self.start(**settings)
        await self.until(self.is_ready)
        return process

    async def is_ready(self) -> bool:
        """Ask the admin port."""

        def ask() -> bool:
            url = f"http://127.0.0.1:{self.admin_port}/readyz"
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        return await asyncio.to_thread(ask)

    def kill_all(self) -> None:
        """Kill what still runs."""
        for process in self._running:
            process.kill()
            process.wait(30)

    # The database

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query; a table that is changed by hand makes no history."""
        self.changed_by_hand |= query.startswith("UPDATE")
        with psycopg.connect(plain_url(self.database_url)) as connection:
            return connection.execute(query.encode()).fetchall()

    def value(self, query: str) -> Any:
        """Return the one value of a query."""
        return self.rows(query)[0][0]

    async def until(self, true: Callable[[], Awaitable[bool]]) -> None:
        """Return as soon as something is so."""
        async with asyncio.timeout(DEADLINE_S):
            while not await true():  # noqa: ASYNC110 (a state of other processes)
                await asyncio.sleep(0.05)

    async def until_value(self, query: str, wanted: Any) -> None:
        """Return as soon as a query has a value."""

        async def true() -> bool:
            return bool(self.value(query) == wanted)

        try:
            await self.until(true)
        except TimeoutError:
            pytest.fail(f"{query}: {self.value(query)} after {DEADLINE_S} s, wanted {wanted}")

    async def until_state(self, instance_id: str, state: str) -> None:
        """Return as soon as an instance is in a state."""
        await self.until_value(
            f"SELECT max(state) FROM instances WHERE instance_id = '{instance_id}'",  # noqa: S608
            state,
        )

    # What agents, executors and people publish

    async def observe(self, *names: str, life: str = "life-1") -> None:
        """Have the executor tell of running instances."""
        for name in names:
            await self.publisher.publish(
                InstanceObserved(
                    timestamp=datetime.now(UTC),
                    instance_id=name,
                    running=True,
                    life_id=f"{name}-{life}",
                    base_url="http://127.0.0.1:1",
                )
            )

    async def bring_up(self, *names: str) -> None:
        """Have instances observed, probed and readmitted."""
        await self.observe(*names)
        for name in names:
            await self.until_state(name, "probation")
            await self.answer_probes(name)
            await self.until_state(name, "healthy")

    async def answer_probes(self, name: str, outcome: str = "passed") -> None:
        """Have an agent answer the ticket of an instance."""
        ticket = self.value(f"SELECT ticket_id FROM instances WHERE instance_id = '{name}'")  # noqa: S608
        await self.publisher.publish(
            verdict(name, CheckLevel.L5, request_id=ticket, outcome=outcome)
        )

    async def alert(self, body: bytes, key: str = "by.hand", **properties: Any) -> None:
        """Publish as a person does."""
        message = aio_pika.Message(body, **properties)
        await self.publisher.publish_raw(message, ALERTS, key, mandatory=True)

    # The queues

    async def depth(self, queue: str) -> int:
        """Return how many messages of a queue are ready."""
        channel = await self.publisher.channel()
        declared = await channel.declare_queue(queue, passive=True)
        return declared.declaration_result.message_count or 0

    async def is_read(self) -> bool:
        """Tell whether no verdict waits in the queue."""
        return await self.depth(VERDICTS.name) == 0

    async def commands(self) -> list[str]:
        """Take the commands that wait for the executor, and return what they order."""
        bodies = [json.loads(message.body) for message in await self._drain(COMMANDS.name)]
        return [f"{body['action']} {body['instance_id']}" for body in bodies]

    async def dead_letters(self, count: int) -> list[AbstractIncomingMessage]:
        """Return the dead letters once there are so many."""

        async def there() -> bool:
            return await self.depth(DEAD_LETTERS) >= count

        await self.until(there)
        return await self._drain(DEAD_LETTERS)

    async def _drain(self, queue: str) -> list[AbstractIncomingMessage]:
        channel = await self.publisher.channel()
        declared = await channel.declare_queue(queue, passive=True)
        messages = []
        while message := await declared.get(fail=False, no_ack=True):
            messages.append(message)
        return messages


def verdict(name: str, level: CheckLevel = CheckLevel.L1, **fields: Any) -> Verdict:
    """Return a soft failure that just happened."""
    known: dict[str, Any] = {
        "timestamp": datetime.now(UTC),
        "instance_id": name,
        "request_id": "r1",
        "check_level": level,
    }
    return Verdict(**(known | fields))


def failures(name: str, count: int, **fields: Any) -> list[Verdict]:
    """Return failures of distinct prompts."""
    return [verdict(name, request_id=f"request-{n}", **fields) for n in range(count)]


@pytest.fixture
async def site(vhost_url: str, fresh_database: str) -> AsyncIterator[Site]:
    """Give a broker and a migrated database; the test starts the managers."""
    upgrade(fresh_database, find_migrations(None))
    async with Publisher(vhost_url, "test", deadline_s=10) as publisher:
        await declare_topology(await publisher.channel())
        site = Site(vhost_url, fresh_database, publisher)
        try:
            yield site
        finally:
            site.kill_all()
        if not site.changed_by_hand:
            assert_replay_agrees(fresh_database)


@pytest.fixture
async def desk(fresh_database: str) -> AsyncIterator[Desk]:
    """Give a store with the default rules."""
    upgrade(fresh_database, find_migrations(None))
    engine = open_database(fresh_database)
    yield Desk(fresh_database, engine, Policy())
    assert_replay_agrees(fresh_database)
    await engine.dispose()
