"""A console whose requests a real manager decides, over two instances that were observed."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
from tests.integration.console.site import Console

from gatemesh_common.broker import declare_topology
from gatemesh_common.messages import InstanceObserved
from gatemesh_common.publisher import Publisher
from gatemesh_mesh.postgres import plain_url

POOL = "chat"
DEADLINE_S = 60.0


@contextmanager
def decided_console(database_url: str, amqp_url: str) -> Iterator[Console]:
    """Run manager and console until the block ends."""
    environment = {
        **os.environ,
        "GATEMESH_AMQP_URL": amqp_url,
        "GATEMESH_DATABASE_URL": database_url,
        "GATEMESH_HEALTH_MANAGER_ADMIN_PORT": "0",
        "GATEMESH_LOG_LEVEL": "WARNING",
    }
    service = [sys.executable, "-m", "gatemesh_health_manager"]
    subprocess.run([*service, "migrate"], env=environment, check=True, timeout=120)
    with subprocess.Popen(service, env=environment) as manager:
        console = Console(database_url, amqp_url)
        try:
            # In a thread of its own: Playwright leaves a loop running in this one.
            with ThreadPoolExecutor(1) as thread:
                telling = observe(amqp_url, ("engine-0", "engine-1"))
                thread.submit(asyncio.run, telling).result()
            until_known(plain_url(database_url), 2)
            console.await_ready()
            yield console
        finally:
            console.stop()
            manager.terminate()


async def observe(amqp_url: str, names: tuple[str, ...]) -> None:
    """Tell of instances as an executor does, once the manager's queues are there."""
    async with Publisher(amqp_url, "test-executor") as publisher, asyncio.timeout(DEADLINE_S):
        await declare_topology(await publisher.channel())
        for name in names:
            await publisher.publish(
                InstanceObserved(
                    timestamp=datetime.now(UTC),
                    instance_id=name,
                    pool=POOL,
                    running=True,
                    life_id=f"{name}-life",
                    base_url="http://127.0.0.1:1",
                )
            )


def until_known(database_url: str, count: int) -> None:
    """Wait until the manager knows so many instances."""
    until_value(database_url, "SELECT count(*) FROM instance_health_v1", count)


def until_value(database_url: str, query: str, wanted: object) -> None:
    """Wait until a query has a value."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        with psycopg.connect(database_url) as connection:
            row = connection.execute(query.encode()).fetchone()
        if row and row[0] == wanted:
            return
        assert time.monotonic() < deadline, f"{query}: {row}"
        time.sleep(0.1)
