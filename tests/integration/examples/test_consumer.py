"""The example consumer works as its text says."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aio_pika.exceptions import ChannelNotFoundEntity

from gatemesh_common.messages import IncidentChanged
from gatemesh_common.publisher import Publisher

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "consumer" / "incidents.py"
MOST_LINES = 25


def test_it_is_small() -> None:
    """A reader sees all of it at once; empty lines do not count."""
    lines = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES


async def test_it_prints_incidents(vhost_url: str) -> None:
    """Started beside nothing but a broker."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        env={**os.environ, "GATEMESH_AMQP_URL": vhost_url},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with Publisher(vhost_url, "test") as publisher, asyncio.timeout(30):
            await until_read(publisher)
            await publisher.publish(
                IncidentChanged(
                    timestamp=datetime.now(UTC),
                    instance_id="engine-0",
                    incident_id="i-1",
                    incarnation=1,
                    condition="B",
                    status="open",
                    reason="nan_logits",
                )
            )
            assert process.stdout is not None
            assert await process.stdout.readline() == b"open engine-0 B nan_logits\n"
    finally:
        process.kill()
        await process.wait()


async def until_read(publisher: Publisher, name: str = "example.incidents") -> None:
    """Wait until the example reads its queue."""
    while True:
        try:
            channel = await publisher.channel()
            queue = await channel.declare_queue(name, passive=True)
        except ChannelNotFoundEntity:
            await asyncio.sleep(0.05)
            continue
        if queue.declaration_result.consumer_count:
            return
