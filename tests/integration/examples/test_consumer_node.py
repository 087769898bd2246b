"""The consumer in Node reads the real broker, where Node is."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aio_pika
import pytest
from tests.integration.examples.test_consumer import until_read

from gatemesh_common.broker import DEAD_LETTERS, declare_topology
from gatemesh_common.messages import EVENTS, IncidentChanged
from gatemesh_common.publisher import Publisher

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "consumer_node"
INSTALL_DEADLINE_S = 90
NO_NETWORK = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not (shutil.which("node") and shutil.which("npm")), reason="node and npm are not installed"
    ),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its one package, in a folder of its own."""
    folder = tmp_path_factory.mktemp("node") / "consumer_node"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"]
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm had no answer within {INSTALL_DEADLINE_S} s")
    if result.returncode and (fault := NO_NETWORK.search(result.stderr)):
        pytest.skip(f"npm cannot reach its registry: {fault.group()}")
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
async def reading(installed: Path, vhost_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The example as a process beside a broker with the topology."""
    async with Publisher(vhost_url, "test") as publisher:
        await declare_topology(await publisher.channel())
    async with started(installed, vhost_url) as process:
        yield process


@asynccontextmanager
async def started(folder: Path, vhost_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the example while the block lasts."""
    process = await asyncio.create_subprocess_exec(
        *("node", "incidents.mjs"),
        cwd=folder,
        env={**os.environ, "GATEMESH_AMQP_URL": vhost_url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_prints_incidents_and_rejects_what_it_cannot_read(
    vhost_url: str, reading: asyncio.subprocess.Process
) -> None:
    """Its queue is one of its own, with the dead letters behind it."""
    incident = IncidentChanged(
        timestamp=datetime.now(UTC),
        instance_id="engine-0",
        incident_id="i-1",
        incarnation=1,
        condition="B",
        status="open",
        reason="nan_logits",
    )
    async with Publisher(vhost_url, "test") as publisher, asyncio.timeout(60):
        await until_read(publisher, "example.node.incidents")
        nonsense = aio_pika.Message(b"no JSON", message_id="m-nonsense")
        await publisher.publish_raw(nonsense, EVENTS, "incident.v1.chat.e", mandatory=True)
        await publisher.publish(incident)
        assert reading.stdout is not None
        assert await reading.stdout.readline() == b"open engine-0 B nan_logits\n"
        assert await dead_letter(publisher) == "m-nonsense"
        channel = await publisher.channel()
        await channel.queue_delete("example.node.incidents")
        assert await reading.wait() == 70


async def test_it_ends_where_nothing_is_declared_yet(installed: Path, vhost_url: str) -> None:
    """It says what is missing, and whoever supervises it starts it again."""
    async with started(installed, vhost_url) as process, asyncio.timeout(60):
        _, told = await process.communicate()
        assert process.returncode == 70
        assert b"vllm_health_event" in told


async def dead_letter(publisher: Publisher) -> str | None:
    """Wait for a dead letter and return its id."""
    channel = await publisher.channel()
    queue = await channel.declare_queue(DEAD_LETTERS, passive=True)
    while True:
        letter = await queue.get(no_ack=True, fail=False)
        if letter is not None:
            return letter.message_id
        await asyncio.sleep(0.05)
