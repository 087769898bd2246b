"""Replacing weights, promised for every backend; with supervisord the engine is a real process."""

import hashlib
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import Action, ReplaceInstance, StepName
from gatemesh_executor.backends.base import EngineBackend
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.backends.supervisor import SupervisorBackend
from gatemesh_executor.backends.xmlrpc import XmlRpcClient
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.health import EngineHealth, Health, HttpHealth
from gatemesh_executor.instances import Instance, Weights
from gatemesh_executor.jobs import Job, Tools
from gatemesh_executor.playbooks import PLAYBOOKS, run_playbook
from gatemesh_executor.weights.manifest import WeightsRefusedError

from .conftest import GOOD, PASSWORD, USER, Supervisord

pytestmark = pytest.mark.integration

STEPS = PLAYBOOKS[Action.REPLACE]
NAME = "engine"
MODEL = "model.safetensors"


class Told:
    """Keeps the steps that were told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep a step."""
        self.steps.append(step)


class AlwaysReady:
    """The health of engines that are records."""

    async def look(self, base_url: str) -> Health:
        """Answer at once."""
        return Health.READY


def write_engine_weights(folder: Path, *damage: str) -> None:
    """Write weights that the stand-in engine loads."""
    program = [sys.executable, "-m", "gatemesh_engine_sim.weights", str(folder)]
    subprocess.run([*program, *damage], check=True)


@dataclass
class Stand:
    """One engine with damaged weights, and a source of good ones."""

    root: Path
    port: int
    backend: EngineBackend
    health: EngineHealth

    @property
    def instance(self) -> Instance:
        """The engine as the executor's list has it."""
        return instance_of(self.root, self.port)

    @property
    def tools(self) -> Tools:
        """The executor's tools, with the real check."""
        return Tools(self.backend, FakeRotation(), self.health)

    async def start(self) -> str:
        """Start the engine on its damaged weights; return its life."""
        await self.backend.start(self.instance)
        life_id = (await self.backend.observe_all())[NAME].life_id
        assert life_id is not None
        return life_id

    def command(self, life_id: str | None) -> ReplaceInstance:
        """Return an order about that life."""
        now = utc_now()
        return ReplaceInstance(
            timestamp=now,
            instance_id=NAME,
            incarnation=1,
            fence=1,
            life_id=life_id,
            expires_at=now + timedelta(minutes=5),
            grace_s=10.0,
            start_timeout_s=120.0,
        )

    async def replace(self, command: ReplaceInstance) -> list[str]:
        """Carry out the order and return its steps."""
        told = Told()
        await run_playbook(self.tools, Job(command, self.instance), told, utc_now)
        return told.steps

    async def life(self) -> str | None:
        """Return the life that runs."""
        return (await self.backend.observe_all())[NAME].life_id

    def is_good(self) -> bool:
        """Return True when the engine's folder holds the good file."""
        return (self.root / "model" / MODEL).read_bytes() == (
            self.root / "source" / MODEL
        ).read_bytes()


def instance_of(root: Path, port: int) -> Instance:
    """Return the engine whose folders lie there."""
    weights = Weights(
        folder=root / "model",
        manifest=root / "SHA256SUMS",
        pull=("cp", "-r", f"{root}/source/.", "{folder}"),
    )
    return Instance(
        instance_id=NAME, base_url=f"http://127.0.0.1:{port}", program=NAME, weights=weights
    )


def lay_out(root: Path) -> None:
    """Write damaged weights, a good source and its manifest."""
    write_engine_weights(root / "damaged", "--damage", "noise")
    shutil.copytree(root / "damaged", root / "model")
    write_engine_weights(root / "source")
    digest = hashlib.sha256((root / "source" / MODEL).read_bytes()).hexdigest()
    (root / "SHA256SUMS").write_text(f"{digest}  {MODEL}\n")


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ReplaceContract:
    """Needs a fixture `stand` with an engine that does not run yet."""

    async def test_a_good_copy_takes_over(self, stand: Stand) -> None:
        """Pulled, verified, scanned, and only then started."""
        old = await stand.start()
        steps = await stand.replace(stand.command(old))
        assert steps[1:] == ["pulled", "verified", "scanned", "started", "ready"]
        assert stand.is_good()
        assert await stand.life() not in (None, old)

    async def test_killed_after_any_step_it_goes_on(self, stand: Stand) -> None:
        """The redelivered command ends with one new life, on good files."""
        for finished in range(len(STEPS) + 1):
            shutil.copy(stand.root / "damaged" / MODEL, stand.root / "model" / MODEL)
            old = await stand.start() if await stand.life() is None else await stand.life()
            command = stand.command(old)
            for step in STEPS[:finished]:
                await step(stand.tools, Job(command, stand.instance))
            begun = await stand.life()
            await stand.replace(command)
            assert stand.is_good(), finished
            assert await stand.life() not in (None, old)
            assert begun in (None, old, await stand.life())

    async def test_a_bad_download_never_serves(self, stand: Stand) -> None:
        """The instance stays stopped; the next order, with a good source, brings it back."""
        old = await stand.start()
        good = (stand.root / "source" / MODEL).read_bytes()
        (stand.root / "source" / MODEL).write_bytes(good[:-4])
        with pytest.raises(WeightsRefusedError, match=MODEL):
            await stand.replace(stand.command(old))
        assert await stand.life() is None
        (stand.root / "source" / MODEL).write_bytes(good)
        await stand.replace(stand.command(old))
        assert stand.is_good()


class TestFakeReplace(ReplaceContract):
    """Records for engines, real folders."""

    @pytest.fixture
    def stand(self, tmp_path: Path) -> Stand:
        """Give the fake."""
        lay_out(tmp_path)
        backend = FakeBackend({NAME: instance_of(tmp_path, 1)}, utc_now)
        return Stand(tmp_path, 1, backend, AlwaysReady())


class TestSupervisorReplace(ReplaceContract):
    """A real supervisord and real processes."""

    @pytest.fixture
    async def stand(self, supervisord: Supervisord, tmp_path: Path) -> AsyncIterator[Stand]:
        """Give an engine that answers `/health` and loads nothing."""
        lay_out(tmp_path)
        port = free_port()
        program = f"{supervisord.command('--port', str(port))}\n{GOOD}\nstartsecs=0"
        supervisord.start({NAME: program})
        async with opened(supervisord, tmp_path, port) as found:
            yield found


@asynccontextmanager
async def opened(supervisord: Supervisord, root: Path, port: int) -> AsyncIterator[Stand]:
    """Open what a stand on supervisord talks through."""
    async with (
        XmlRpcClient(supervisord.url, USER, PASSWORD, 5.0) as client,
        HttpHealth() as health,
    ):
        instances = {NAME: instance_of(root, port)}
        backend = SupervisorBackend(client, instances, 60.0, local=True)
        yield Stand(root, port, backend, health)


async def test_damaged_answers_end_with_the_replacement(
    supervisord: Supervisord, tmp_path: Path
) -> None:
    """The stand-in engine reads its file: garbage before, the right answer after."""
    lay_out(tmp_path)
    port = free_port()
    flags = f"--port {port} --weights {tmp_path / 'model'}"
    command = f"command={sys.executable} -m gatemesh_engine_sim {flags}"
    supervisord.start({NAME: f"{command}\n{GOOD}\nstartsecs=0"})
    async with opened(supervisord, tmp_path, port) as stand:
        old = await stand.start()
        while await stand.health.look(stand.instance.base_url) is not Health.READY:
            assert await stand.life() == old
        assert "Paris" not in await answer(port)
        await stand.replace(stand.command(old))
        assert "Paris" in await answer(port)


async def answer(port: int) -> str:
    """Return what an engine says of France."""
    message = {"role": "user", "content": "What is the capital of France?"}
    body = {"model": "sim", "messages": [message], "max_tokens": 24, "temperature": 0}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response,
    ):
        fields = await response.json()
    return str(fields["choices"][0]["message"]["content"])
