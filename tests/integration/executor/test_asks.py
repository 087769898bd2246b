"""A core dump before a restart, and the way back to a model version, by the real executor."""

import stat
from pathlib import Path

import pytest

from gatemesh_common.messages import ReportOutcome, RestartInstance, RollBackInstance

from .conftest import ExecutorProcess, Manager, Platform
from .test_executor import running_life

pytestmark = pytest.mark.integration


def cores_in(folder: Path) -> dict[str, bytes]:
    """Return the beginnings of the cores in a folder that is its owner's alone."""
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    return {core.name: core.read_bytes()[:4] for core in folder.glob("core.*")}


async def test_a_proven_sick_engine_is_dumped_before_it_ends(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The report names the dump; the restart is one like any other."""
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    command = await manager.order(RestartInstance, life_id=life, grace_s=1, dump_timeout_s=30)
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED, report.reason
    assert report.life_id not in (None, life)
    assert manager.steps_of(command)[0] == "dumped", report.reason
    folder = Path(report.core_dump)
    assert folder.parent == platform.instances_file.parent / "dumps"
    assert cores_in(folder) == {f"core.{life.partition('@')[0]}": b"\x7fELF"}


async def test_a_version_is_rolled_back_and_named_anew(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The command has put the former version into the instances file."""
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    command = await manager.order(RollBackInstance, life_id=life, grace_s=1)
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED, report.reason
    assert report.reason == "model version 'm0' now"
    assert report.life_id not in (None, life)
    await manager.observed(lambda it: it.life_id == report.life_id and it.model_version == "m0")


async def test_without_a_way_back_the_life_goes_on(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """And the report says what is missing."""
    text = platform.instances_file.read_text()
    platform.instances_file.write_text(text.replace("[pools.demo.roll_back]\ncommand", "#command"))
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    report = await manager.report_of(await manager.order(RollBackInstance, life_id=life))
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason.startswith("roll_back_not_offered: instance 'engine-0' has no roll_back.")
    assert report.life_id == life
