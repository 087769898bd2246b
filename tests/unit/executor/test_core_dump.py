"""The step that keeps the memory of a proven sick life."""

from dataclasses import replace
from pathlib import Path

import pytest

from gatemesh_common.messages import RestartInstance
from gatemesh_executor.core_dump import dump_core
from gatemesh_executor.dumping import CoreDumpFailedError, DumpOrder
from gatemesh_executor.instances import CoreDump
from gatemesh_executor.jobs import Job, Tools
from gatemesh_executor.playbooks import run_playbook

from .conftest import INSTANCES, World

LIFE = "4711@100"


class FakeDumper:
    """Writes a small file, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.orders: list[DumpOrder] = []
        self.error = error

    async def dump(self, order: DumpOrder) -> None:
        """Write it."""
        self.orders.append(order)
        (order.folder / "core.4711").write_text("memory")
        if self.error is not None:
            raise self.error


def names_in(folder: Path) -> list[str]:
    """Return what lies in a folder."""
    return [path.name for path in folder.iterdir()]


class Quiet:
    """Is told of every step."""

    def note(self, step: str, duration_s: float) -> None:
        """Keep nothing."""


async def sick(world: World, folder: Path, dump_timeout_s: float = 30.0, **rules: object) -> Job:
    """Return the restart of a life that a process of this machine runs."""
    await world.start()
    backend = world.backend
    backend._seen["engine-0"] = replace(backend._seen["engine-0"], life_id=LIFE)
    known = {"how": "gcore", "folder": folder, **rules}
    instance = INSTANCES["engine-0"].model_copy(
        update={"core_dump": CoreDump.model_validate(known)}
    )
    command = world.command(RestartInstance, life_id=LIFE, dump_timeout_s=dump_timeout_s)
    return Job(command, instance)


def tools_with(world: World, dumper: FakeDumper) -> Tools:
    """Return the world's tools with a dumper."""
    return replace(world.tools, dumper=dumper)


async def test_the_dump_has_its_name_when_it_is_whole(world: World, tmp_path: Path) -> None:
    """Within the shorter of both times; a repeated command takes no second one."""
    dumper = FakeDumper()
    job = await sick(world, tmp_path / "dumps", timeout_s=10)
    assert await dump_core(tools_with(world, dumper), job) == "dumped"
    assert (Path(job.core_dump) / "core.4711").read_text() == "memory"
    assert [(order.group, order.timeout_s) for order in dumper.orders] == [(4711, 10)]
    again = Job(job.command, job.instance)
    assert await dump_core(tools_with(world, dumper), again) == "dumped"
    assert (again.core_dump, len(dumper.orders)) == (job.core_dump, 1)


@pytest.mark.parametrize("error", [CoreDumpFailedError("disk"), OSError(28, "No space", "/dumps")])
async def test_a_failure_is_told_and_the_restart_goes_on(
    world: World, tmp_path: Path, error: Exception
) -> None:
    """Nothing half is left."""
    job = await sick(world, tmp_path)
    tools = tools_with(world, FakeDumper(error))
    await run_playbook(tools, job, Quiet(), world.time.clock)
    assert job.core_dump == ""
    assert job.notes[0].startswith("no core dump: ")
    assert names_in(tmp_path) == []
    assert world.backend.calls == [
        ("start", "engine-0"),
        ("stop", "engine-0"),
        ("start", "engine-0"),
    ]


@pytest.mark.parametrize(
    ("seconds", "rules"), [(0.0, {}), (30.0, {"how": "off"})], ids=["not-wanted", "off"]
)
async def test_no_dump_is_taken_where_none_is_wanted(
    world: World, tmp_path: Path, seconds: float, rules: dict[str, str]
) -> None:
    """Neither by the command nor by the instances file."""
    job = await sick(world, tmp_path, seconds, **rules)
    assert await dump_core(tools_with(world, FakeDumper()), job) is None
    assert job.notes == []


async def test_another_life_is_left_alone(world: World, tmp_path: Path) -> None:
    """What is sick is gone already."""
    job = await sick(world, tmp_path)
    world.backend.crash("engine-0")
    dumper = FakeDumper()
    assert await dump_core(tools_with(world, dumper), job) is None
    assert dumper.orders == []


async def test_a_life_that_is_no_process_is_told(world: World, tmp_path: Path) -> None:
    """As one of another platform."""
    job = await sick(world, tmp_path)
    world.backend._seen["engine-0"] = replace(
        world.backend._seen["engine-0"],
        life_id="pod-1",
    )
    command = job.command.model_copy(update={"life_id": "pod-1"})
    elsewhere = Job(command, job.instance)
    assert await dump_core(tools_with(world, FakeDumper()), elsewhere) is None
    assert elsewhere.notes == ["no core dump: the life is no process of this machine"]
