"""The embedded nodes keep what they were given, also across a kill."""

import asyncio
import random
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aio_pika
import psycopg
import pytest

from gatemesh_mesh import nodes, postgres, rabbit
from gatemesh_mesh.errors import ProgramFailedError
from gatemesh_mesh.nodes import Nodes
from gatemesh_mesh.ports import choose_ports
from gatemesh_mesh.processes import send
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import Supervision
from gatemesh_mesh.waiting import wait_until

pytestmark = pytest.mark.integration


@dataclass
class Runner:
    """Starts the two nodes in one state folder, as often as wanted."""

    folder: StateFolder
    supervision: Supervision
    nodes: Nodes

    def start(self) -> None:
        """Start both and wait."""
        self.supervision.start()
        nodes.start_nodes(self.supervision, self.nodes, SilentProgress())

    def kill(self) -> None:
        """Kill everything at once, as a power cut would."""
        for process in self.supervision.survivors():
            send(process, signal.SIGKILL)
        assert self.supervision.close() == []


@pytest.fixture
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Plan both nodes below a folder that other users cannot pass, as under a home folder."""
    closed: Path = tmp_path_factory.mktemp("closed", numbered=True)
    closed.chmod(0o700)
    folder = StateFolder(closed / "state")
    folder.create()
    ports = choose_ports(nodes.node_port_names(), random.Random())
    plan = nodes.plan_nodes(folder, SilentProgress(), ports)
    runner = Runner(folder, Supervision(folder), plan)
    yield runner
    assert nodes.close(runner.supervision) == []
    forget(plan)


def forget(plan: Nodes) -> None:
    """Remove what the database keeps outside the state folder."""
    assert plan.postgres
    shutil.rmtree(plan.postgres.folder, ignore_errors=True)


async def test_what_was_confirmed_survives_a_kill(runner: Runner) -> None:
    """A message and a row that were confirmed are there after kill -9 of everything."""
    assert runner.nodes.rabbit
    assert runner.nodes.postgres
    runner.start()
    await put_message(runner.nodes.rabbit.amqp_url)
    url = postgres.plain_url(runner.nodes.postgres.url())
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (x int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    await asyncio.to_thread(await_queue_on_disk, runner.nodes.rabbit.folder)
    runner.kill()
    assert not rabbit.accepts_amqp(runner.nodes.rabbit.amqp_url)
    runner.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT x FROM kept").fetchall() == [(7,)]
    assert await take_message(runner.nodes.rabbit.amqp_url) == b"kept"


async def test_a_stop_without_its_delay_keeps_what_was_confirmed(runner: Runner) -> None:
    """The statistics have ended before the signal, and the rest is an orderly stop."""
    node = runner.nodes.rabbit
    assert node
    runner.start()
    await put_message(node.amqp_url)
    assert nodes.close(runner.supervision) == []
    said = node.log_file.read_text(errors="replace")
    assert said.index("to stop collect_statistics") < said.index("SIGTERM received")
    assert "stopped TCP listener" in said
    runner.start()
    assert await take_message(node.amqp_url) == b"kept"


async def put_message(url: str) -> None:
    """Put a confirmed message into a quorum queue."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("kept", durable=True, arguments={"x-queue-type": "quorum"})
        message = aio_pika.Message(b"kept", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, routing_key="kept")


def await_queue_on_disk(folder: Path) -> None:
    """Wait until the node has written down that the queue exists.

    It does so within half a second; a quorum queue whose node is killed before that never finds a
    leader again.
    """

    def is_written() -> bool:
        return any(b"kept" in path.read_bytes() for path in folder.rglob("names.dets"))

    assert wait_until(is_written, 60)


async def take_message(url: str) -> bytes:
    """Take it out again."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.get_queue("kept")
        message = await queue.get(timeout=30)
        await message.ack()
        return message.body


def test_a_taken_port_is_told_by_the_node_s_own_log(runner: Runner) -> None:
    """A person sees why the database did not start, without looking for a file."""
    assert runner.nodes.postgres
    taken = socket.create_server(("127.0.0.1", runner.nodes.postgres.port))
    with taken, pytest.raises(ProgramFailedError, match="Address already in use"):
        runner.start()
