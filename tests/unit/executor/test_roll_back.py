"""The step that puts the former model version in place."""

import asyncio

import pytest

from gatemesh_common.messages import Action, EjectInstance, RollBackInstance, StepName
from gatemesh_executor.backends.base import RollBackFailedError, RollBackNotOfferedError
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.instances import Instance
from gatemesh_executor.playbooks import PLAYBOOKS, run_playbook
from gatemesh_executor.roll_back import roll_back

from .conftest import INSTANCES, World


class Told:
    """Keeps the steps that were told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep a step."""
        self.steps.append(step)


async def test_the_switch_comes_before_the_new_life(world: World) -> None:
    """One life ends and one begins, on the former version."""
    job = world.job(world.command(RollBackInstance, life_id=await world.start()))
    told = Told()
    await run_playbook(world.tools, job, told, world.time.clock)
    assert told.steps == ["rolled_back", "stopped", "started", "ready"]
    assert world.backend.rolled_back == {"engine-0"}
    assert (await world.backend.observe_all())["engine-0"].life_id == "life-2"


async def test_without_a_way_back_nothing_is_ended(world: World) -> None:
    """The life that runs is better than none."""
    world.backend.behave("engine-0", knows_a_way_back=False)
    job = world.job(world.command(RollBackInstance, life_id=await world.start()))
    with pytest.raises(RollBackNotOfferedError):
        await run_playbook(world.tools, job, Told(), world.time.clock)
    assert (await world.backend.observe_all())["engine-0"].life_id == "life-1"


@pytest.mark.parametrize("finished", range(len(PLAYBOOKS[Action.ROLL_BACK]) + 1))
async def test_one_cut_anywhere_ends_the_same(world: World, finished: int) -> None:
    """Wherever the executor was killed, one new life runs the former version."""
    command = world.command(RollBackInstance, life_id=await world.start())
    for step in PLAYBOOKS[Action.ROLL_BACK][:finished]:
        await step(world.tools, world.job(command))
    await run_playbook(world.tools, world.job(command), Told(), world.time.clock)
    assert (await world.backend.observe_all())["engine-0"].life_id == "life-2"


class Endless(FakeBackend):
    """A platform whose way back has no end."""

    async def roll_back(self, instance: Instance) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()


async def test_the_time_is_bounded(world: World) -> None:
    """By the command, whatever the platform allows itself."""
    world.backend = Endless(INSTANCES, world.time.clock)
    job = world.job(world.command(RollBackInstance, roll_back_timeout_s=0.01))
    with pytest.raises(RollBackFailedError, match=r"not done in 0.01 s"):
        await roll_back(world.tools, job)


async def test_other_commands_are_none_of_it(world: World) -> None:
    """Nothing is switched for them."""
    assert await roll_back(world.tools, world.job(world.command(EjectInstance))) is None
    assert world.backend.calls == []
