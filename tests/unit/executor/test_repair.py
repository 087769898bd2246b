"""The steps that repair a running engine."""

from pathlib import Path

import pytest

from gatemesh_common.messages import Action, ReadmitInstance, RepairInstance, StepName
from gatemesh_executor.playbooks import PLAYBOOKS, run_playbook
from gatemesh_executor.repair import OF_NOTHING, CacheInUseError, LifeGoneError
from gatemesh_executor.repairing import RepairFailedError, RepairNotOfferedError
from gatemesh_executor.weights.checksums import Checksums

from .conftest import INSTANCES, World


class Told:
    """Keeps the steps that were told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep a step."""
        self.steps.append(step)


@pytest.fixture
def kept(world: World, tmp_path: Path) -> World:
    """Give a world that keeps checksums."""
    world.checksums = Checksums(tmp_path)
    return world


async def test_damage_in_memory_is_named_and_mended(kept: World) -> None:
    """Against what the engine hashed to when it was let back."""
    life_id = await kept.start()
    readmit = kept.job(kept.command(ReadmitInstance, life_id=life_id))
    await run_playbook(kept.tools, readmit, Told(), kept.time.clock)
    kept.repair.memory["b"] = "damaged"
    job = kept.job(kept.command(RepairInstance, life_id=life_id))
    told = Told()
    await run_playbook(kept.tools, job, told, kept.time.clock)
    assert told.steps == ["checked", "reloaded", "cache_reset"]
    assert kept.repair.memory == kept.repair.files
    assert job.notes == [
        "1 parameters differed from the proven ones: b",
        "1 parameters changed by the reload: b",
    ]


async def test_damaged_files_fail_the_repair(kept: World) -> None:
    """The reload brought the damage back; only a replacement helps."""
    life_id = await kept.start()
    kept.checksums.save(INSTANCES["engine-0"], kept.repair.files)
    kept.repair.files = {"a": "1", "b": "damaged"}
    job = kept.job(kept.command(RepairInstance, life_id=life_id))
    with pytest.raises(RepairFailedError, match="1 parameters still differ after the reload: b"):
        await run_playbook(kept.tools, job, Told(), kept.time.clock)


async def test_without_a_baseline_the_reload_itself_tells(world: World) -> None:
    """What it changes was damaged in memory."""
    life_id = await world.start()
    world.repair.memory["a"] = "damaged"
    job = world.job(world.command(RepairInstance, life_id=life_id))
    await run_playbook(world.tools, job, Told(), world.time.clock)
    assert job.notes == [
        "no checksums of a proven life to compare with",
        "1 parameters changed by the reload: a",
    ]


async def test_what_the_engine_cannot_see_is_said(world: World) -> None:
    """On the CPU build linear layers hash to nothing and always agree."""
    life_id = await world.start()
    world.repair.files = {"a": "1", "b": OF_NOTHING}
    world.repair.memory = dict(world.repair.files)
    job = world.job(world.command(RepairInstance, life_id=life_id))
    await run_playbook(world.tools, job, Told(), world.time.clock)
    assert job.notes[0] == "1 of 2 parameters cannot be checked on this engine"


async def test_a_cache_in_use_is_waited_for(world: World) -> None:
    """Requests end."""
    world.repair.busy_looks = 4
    job = world.job(world.command(RepairInstance, life_id=await world.start()))
    await run_playbook(world.tools, job, Told(), world.time.clock)
    assert world.repair.resets == 1


async def test_a_cache_always_in_use_fails(world: World) -> None:
    """What broken weights wrote there would outlive the repair."""
    world.repair.busy_looks = 10**6
    job = world.job(world.command(RepairInstance, life_id=await world.start()))
    with pytest.raises(CacheInUseError, match="30 s"):
        await run_playbook(world.tools, job, Told(), world.time.clock)


async def test_an_engine_without_repair_fails_at_once(world: World) -> None:
    """With the reason that sends the manager on to a restart."""
    world.repair.offered = False
    job = world.job(world.command(RepairInstance, life_id=await world.start()))
    with pytest.raises(RepairNotOfferedError):
        await run_playbook(world.tools, job, Told(), world.time.clock)


@pytest.mark.parametrize("running", [True, False])
async def test_another_life_is_not_repaired(world: World, running: bool) -> None:  # noqa: FBT001
    """The evidence was about the one before."""
    if running:
        await world.start()
    job = world.job(world.command(RepairInstance, life_id="life-0"))
    with pytest.raises(LifeGoneError):
        await run_playbook(world.tools, job, Told(), world.time.clock)


@pytest.mark.parametrize("finished", range(len(PLAYBOOKS[Action.REPAIR]) + 1))
async def test_a_repair_cut_anywhere_ends_the_same(world: World, finished: int) -> None:
    """Each step is safe to do again."""
    command = world.command(RepairInstance, life_id=await world.start())
    world.repair.memory["a"] = "damaged"
    for step in PLAYBOOKS[Action.REPAIR][:finished]:
        await step(world.tools, world.job(command))
    await run_playbook(world.tools, world.job(command), Told(), world.time.clock)
    assert world.repair.memory == world.repair.files
    assert world.repair.resets >= 1


async def test_a_readmission_needs_no_checksums(kept: World) -> None:
    """An engine that offers none, or is gone meanwhile, comes back all the same."""
    kept.repair.offered = False
    job = kept.job(kept.command(ReadmitInstance, life_id=await kept.start()))
    told = Told()
    await run_playbook(kept.tools, job, told, kept.time.clock)
    kept.repair.offered = True
    await run_playbook(
        kept.tools, kept.job(kept.command(ReadmitInstance, life_id="gone")), told, kept.time.clock
    )
    assert told.steps == ["put_back", "put_back"]
    assert kept.checksums.load(INSTANCES["engine-0"]) is None
