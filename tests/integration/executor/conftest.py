"""A real supervisord with simulated engines, a real broker, and the executor as a process."""

import asyncio
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from aio_pika.abc import AbstractIncomingMessage

from gatemesh_common.broker import OBSERVATIONS, REPORTS, STEPS, WorkQueue, declare_topology
from gatemesh_common.messages import (
    CommandReport,
    InstanceCommand,
    InstanceObserved,
    Message,
    StepFinished,
)
from gatemesh_common.publisher import Publisher
from gatemesh_engine_sim.weights import FILE as WEIGHTS_FILE
from gatemesh_engine_sim.weights import digest_of, fresh_parameters, write_weights
from gatemesh_mesh.ports import choose_ports
from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import Supervision

ENGINES = ("engine-0", "engine-1")
DEADLINE_S = 40.0
WEIGHTS = """
[pools.demo.weights]
folder = "model"
manifest = "SHA256SUMS"
pull = ["sh", "-c", "cp ../source/* ."]
[pools.demo.roll_back]
command = ["sh", "-c", "sed -i s/m1/m0/ instances.toml"]
[pools.demo.core_dump]
how = "gcore"
folder = "dumps"
"""
DYING = Path(__file__).parent / "dying_executor.py"

M = TypeVar("M", bound=Message)


class Platform:
    """Two simulated engines under a supervisord of this test's own."""

    def __init__(self, folder: Path, *engine_arguments: str) -> None:
        self.state = StateFolder(folder)
        self.state.create()
        self.supervision = Supervision(self.state)
        self.ports = choose_ports([*ENGINES, "admin"], random.Random())
        self.instances_file = folder / "instances.toml"
        self.instances_file.write_text("\n".join(map(self._instance, ENGINES)) + WEIGHTS)
        self._lay_out_weights()
        self._arguments = engine_arguments

    def start(self, **more_arguments: tuple[str, ...]) -> None:
        """Start supervisord with the engines, none of them running."""
        self.supervision.start()
        self.supervision.add(
            self._program(name, more_arguments.get(name.replace("-", "_"), ())) for name in ENGINES
        )

    def kill_engines(self) -> None:
        """End the engines that run, whatever they do with SIGTERM."""
        if self.supervision.answers():
            for engine in self.supervision.statuses():
                if engine.pid:
                    os.killpg(engine.pid, signal.SIGKILL)

    def environment(self, amqp_url: str) -> dict[str, str]:
        """Return what an executor needs to act here."""
        return {
            **os.environ,
            "GATEMESH_AMQP_URL": amqp_url,
            "GATEMESH_EXECUTOR_SUPERVISOR_URL": self.supervision.url,
            "GATEMESH_EXECUTOR_SUPERVISOR_USER": self.supervision.user,
            "GATEMESH_EXECUTOR_SUPERVISOR_PASSWORD": self.supervision.password,
            "GATEMESH_EXECUTOR_INSTANCES_FILE": str(self.instances_file),
            # One that dies and comes back may find its port taken by another test's program.
            "GATEMESH_EXECUTOR_ADMIN_PORT": "0",
            "GATEMESH_EXECUTOR_CONFIRM_DEADLINE_S": "0.2",
            "GATEMESH_EXECUTOR_STATE_DIR": str(self.instances_file.parent / "executor"),
        }

    def _instance(self, name: str) -> str:
        return (
            f'[[instances]]\ninstance_id = "{name}"\npool = "demo"\nprogram = "{name}"\n'
            f'base_url = "http://127.0.0.1:{self.ports[name]}"\nmodel_version = "m1"\n'
        )

    def _lay_out_weights(self) -> None:
        """Write what the engines load, other weights to pull, and the manifest of those."""
        folder = self.instances_file.parent
        for name, seed in (("model", 0), ("source", 1)):
            numbers = fresh_parameters(seed)
            write_weights(folder / name, numbers, digest_of(numbers))
        digest = hashlib.sha256(self.weights("source")).hexdigest()
        (folder / "SHA256SUMS").write_text(f"{digest}  {WEIGHTS_FILE}\n")

    def weights(self, folder: str = "model") -> bytes:
        """Return the weights that engines load, or those of another folder."""
        return (self.instances_file.parent / folder / WEIGHTS_FILE).read_bytes()

    def _program(self, name: str, more: tuple[str, ...]) -> ProgramSpec:
        engine = (
            *(sys.executable, "-m", "gatemesh_engine_sim", "--port", str(self.ports[name])),
            *("--weights", str(self.instances_file.parent / "model"), "--dev-mode"),
        )
        return ProgramSpec(name, (*engine, *more), self.state.logs / f"{name}.log", stop_wait_s=60)


@pytest.fixture
def platform() -> Iterator[Platform]:
    """Give two engines; the test starts them."""
    folder = Path(tempfile.mkdtemp(prefix="gm-"))
    platform = Platform(folder)
    try:
        yield platform
    finally:
        platform.kill_engines()
        platform.supervision.close()
        shutil.rmtree(folder, ignore_errors=True)


class ExecutorProcess:
    """The executor as operators run it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *dying: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start one; with arguments, one that kills itself where they say."""
        program = (str(DYING), *dying) if dying else ("-m", "gatemesh_executor")
        process = subprocess.Popen([sys.executable, *program], env=self._environment | settings)
        self._running.append(process)
        return process

    def stop(self) -> None:
        """Kill all that still run."""
        for process in self._running:
            process.kill()
            process.wait(30)


@pytest.fixture
def executor(platform: Platform, vhost_url: str) -> Iterator[ExecutorProcess]:
    """Give executors that act on the platform."""
    executors = ExecutorProcess(platform.environment(vhost_url))
    try:
        yield executors
    finally:
        executors.stop()


class Manager:
    """What the manager sees and says; every message is read once."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self.seen: list[Message] = []
        self._news = asyncio.Event()
        self._fence = 0

    async def listen(self) -> None:
        """Begin to read what the executor publishes."""
        channel = await self.publisher.channel()
        await declare_topology(channel)
        for queue, kind in KINDS:
            declared = await channel.declare_queue(queue.name, passive=True)
            await declared.consume(self._reader(kind), no_ack=True)

    async def order(self, kind: type[InstanceCommand], **fields: object) -> InstanceCommand:
        """Publish a command with the next fence."""
        command = self.command(kind, **fields)
        await self.publisher.publish(command)
        return command

    def command(self, kind: type[InstanceCommand], **fields: object) -> InstanceCommand:
        """Return a command with the next fence, valid for a minute."""
        self._fence += 1
        now = datetime.now(UTC)
        facts = {
            "timestamp": now,
            "instance_id": "engine-0",
            "pool": "demo",
            "incarnation": 1,
            "fence": self._fence,
            "expires_at": now + timedelta(seconds=60),
            "incident_id": "i-1",
            **fields,
        }
        return kind.model_validate(facts)

    async def report_of(self, command: InstanceCommand) -> CommandReport:
        """Wait for the report of a command."""
        return await self.find(CommandReport, lambda it: it.command_id == command.message_id)

    async def reports_of(self, command: InstanceCommand, count: int) -> list[CommandReport]:
        """Wait for so many reports that name a command."""

        def told() -> list[CommandReport]:
            reports = [it for it in self.seen if isinstance(it, CommandReport)]
            return [it for it in reports if it.command_id == command.message_id]

        await self.find(CommandReport, lambda _: len(told()) >= count)
        return told()

    async def observed(
        self, holds: Callable[[InstanceObserved], bool], instance_id: str = "engine-0"
    ) -> InstanceObserved:
        """Wait for an observation of an instance."""
        return await self.find(
            InstanceObserved, lambda it: it.instance_id == instance_id and holds(it)
        )

    async def find(self, kind: type[M], holds: Callable[[M], bool]) -> M:
        """Wait for a message, past or to come."""
        async with asyncio.timeout(DEADLINE_S):
            while not (found := [it for it in self.seen if isinstance(it, kind) and holds(it)]):
                self._news.clear()
                await self._news.wait()
        return found[0]

    def steps_of(self, command: InstanceCommand) -> list[str]:
        """Return the steps told so far, each once, as the manager's inbox would keep them."""
        told = {
            message.message_id: message.step
            for message in self.seen
            if isinstance(message, StepFinished) and message.command_id == command.message_id
        }
        return list(told.values())

    def lives(self, instance_id: str = "engine-0") -> list[str]:
        """Return every life of an instance that was ever observed, in order."""
        observed = [
            message.life_id
            for message in self.seen
            if isinstance(message, InstanceObserved)
            and message.instance_id == instance_id
            and message.life_id is not None
        ]
        return list(dict.fromkeys(observed))

    def _reader(self, kind: type[Message]) -> Callable[[AbstractIncomingMessage], Awaitable[None]]:
        async def read(message: AbstractIncomingMessage) -> None:
            self.seen.append(kind.model_validate_json(message.body))
            self._news.set()

        return read


KINDS: tuple[tuple[WorkQueue, type[Message]], ...] = (
    (REPORTS, CommandReport),
    (STEPS, StepFinished),
    (OBSERVATIONS, InstanceObserved),
)


@pytest.fixture
async def manager(vhost_url: str) -> AsyncIterator[Manager]:
    """Give a manager that listens already."""
    async with Publisher(vhost_url, "test-manager") as publisher:
        manager = Manager(publisher)
        await manager.listen()
        yield manager


async def until_exit(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process to end and return its exit code."""
    async with asyncio.timeout(DEADLINE_S):
        while process.poll() is None:  # noqa: ASYNC110 (processes send no events)
            await asyncio.sleep(0.02)
    return process.returncode


def kill_now(process: subprocess.Popen[bytes]) -> None:
    """End a process as the kernel would."""
    process.send_signal(signal.SIGKILL)
    process.wait(30)
