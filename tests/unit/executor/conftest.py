"""Time that passes only when somebody waits, and an executor's world in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from gatemesh_common.messages import AnyCommand, InstanceCommand, Message
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.health import Health
from gatemesh_executor.instances import Instance, Instances
from gatemesh_executor.jobs import Job, Tools, WeightTools
from gatemesh_executor.pace import Pace
from gatemesh_executor.repairing import RepairNotOfferedError
from gatemesh_executor.weights.check import scan_folder, verify_folder
from gatemesh_executor.weights.checksums import Checksums
from gatemesh_executor.weights.manifest import parse_manifest

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
INSTANCES: Instances = {
    name: Instance(instance_id=name, base_url=f"http://{name}:8000", program=name)
    for name in ("engine-0", "engine-1")
}

C = TypeVar("C", bound=InstanceCommand)


@dataclass
class Time:
    """A clock that sleeping moves; `on_sleep` runs after each sleep."""

    elapsed_s: float = 0.0
    on_sleep: list[Callable[[], None]] = field(default_factory=list)

    @property
    def pace(self) -> Pace:
        """Return this time as a pace."""
        return Pace(lambda: self.elapsed_s, self._sleep)

    def clock(self) -> datetime:
        """Return this time as a moment."""
        return START + timedelta(seconds=self.elapsed_s)

    async def _sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds
        for action in self.on_sleep:
            action()


class FakeHealth:
    """Answers what it was told to."""

    def __init__(self) -> None:
        self.answer = Health.READY

    async def look(self, base_url: str) -> Health:
        """Return the answer."""
        return self.answer


class FakeRepair:
    """An engine whose weights are a map, and whose files hold the right ones."""

    def __init__(self) -> None:
        self.offered = True
        self.files = {"a": "1", "b": "1"}
        self.memory = dict(self.files)
        self.busy_looks = 0
        self.resets = 0

    async def checksums(self, base_url: str) -> Mapping[str, str]:
        """Return what is in memory."""
        self._need()
        return dict(self.memory)

    async def reload(self, base_url: str) -> None:
        """Read the files."""
        self._need()
        self.memory = dict(self.files)

    async def reset_cache(self, base_url: str) -> bool:
        """Fail while it is busy."""
        self._need()
        self.busy_looks -= 1
        self.resets += self.busy_looks < 0
        return self.busy_looks < 0

    def _need(self) -> None:
        if not self.offered:
            raise RepairNotOfferedError("404")


def text_of(path: Path) -> str:
    """Return a small file's text."""
    return path.read_text()


class InlineCheck:
    """The real check, in this process."""

    async def verify(self, folder: Path, manifest: Path, ignored: tuple[str, ...]) -> None:
        """Compare every file with the manifest."""
        verify_folder(folder, parse_manifest(text_of(manifest)), ignored)

    async def scan(self, folder: Path) -> tuple[str, ...]:
        """Look at every number."""
        return tuple(scan_folder(folder)["signs"])


class FakeSender:
    """Keeps what was published; fails first with the errors it was given."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.faults: list[Exception] = []
        self.on_publish: Callable[[], None] = lambda: None

    async def publish(self, message: Message) -> None:
        """Keep a message."""
        self.on_publish()
        if self.faults:
            raise self.faults.pop(0)
        self.sent.append(message)


@dataclass
class World:
    """Everything that steps act on."""

    time: Time
    backend: FakeBackend
    rotation: FakeRotation
    health: FakeHealth
    sender: FakeSender
    repair: FakeRepair = field(default_factory=FakeRepair)
    checksums: Checksums = field(default_factory=Checksums)

    @property
    def tools(self) -> Tools:
        """Return the tools of this world."""
        return Tools(
            self.backend,
            self.rotation,
            self.health,
            pace=self.time.pace,
            weights=WeightTools(check=InlineCheck()),
            repair=self.repair,
            checksums=self.checksums,
        )

    def command(self, kind: type[C], **fields: object) -> C:
        """Return a command that is valid for a minute."""
        now = self.time.clock()
        facts = {
            "timestamp": now,
            "instance_id": "engine-0",
            "incarnation": 1,
            "fence": 1,
            "expires_at": now + timedelta(seconds=60),
            **fields,
        }
        return kind.model_validate(facts)

    def job(self, command: AnyCommand) -> Job:
        """Return a job for the command."""
        return Job(command, INSTANCES[command.instance_id])

    async def start(self, instance_id: str = "engine-0") -> str:
        """Start an engine and return its life."""
        await self.backend.start(INSTANCES[instance_id])
        life_id = (await self.backend.observe_all())[instance_id].life_id
        assert life_id is not None
        # So that the life is older than any command to come.
        self.time.elapsed_s += 10
        return life_id


@pytest.fixture
def world() -> World:
    """Give a world in which nothing runs."""
    time = Time()
    return World(
        time, FakeBackend(INSTANCES, time.clock), FakeRotation(), FakeHealth(), FakeSender()
    )
