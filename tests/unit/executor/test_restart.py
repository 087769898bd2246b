"""The steps that bring a new life up."""

import pytest

from gatemesh_common.messages import DrainInstance, RestartInstance
from gatemesh_executor.backends.base import Observation, Phase, StartFailedError
from gatemesh_executor.health import Health
from gatemesh_executor.restart import (
    StartTimeoutError,
    await_ready,
    refuse_an_ended_start,
    start_life,
)

from .conftest import World


async def test_a_start_is_told_again(world: World) -> None:
    """Killed between start and report, the next delivery tells it all the same."""
    job = world.job(world.command(RestartInstance))
    assert await start_life(world.tools, job) == "started"
    assert await start_life(world.tools, job) == "started"
    assert (await world.backend.observe_all())["engine-0"].life_id == "life-1"


async def test_ready_when_it_answers(world: World) -> None:
    """However long it loads, within its limit."""
    await world.start()
    world.health.answer = Health.REFUSED

    def answer_at_last() -> None:
        if world.time.elapsed_s > 40:
            world.health.answer = Health.READY

    world.time.on_sleep.append(answer_at_last)
    assert await await_ready(world.tools, world.job(world.command(RestartInstance))) == "ready"


async def test_an_end_while_starting_is_no_timeout(world: World) -> None:
    """It is told at once, with the exit code."""
    await world.start()
    world.health.answer = Health.REFUSED
    world.time.on_sleep.append(lambda: world.backend.crash("engine-0", exit_code=1))
    with pytest.raises(StartFailedError, match="exited with code 1"):
        await await_ready(world.tools, world.job(world.command(RestartInstance)))


async def test_past_the_limit_it_is_stopped_again(world: World) -> None:
    """A failed start leaves nothing behind."""
    await world.start()
    world.health.answer = Health.NOT_READY
    job = world.job(world.command(RestartInstance, start_timeout_s=30))
    with pytest.raises(StartTimeoutError, match="30 s"):
        await await_ready(world.tools, job)
    assert not (await world.backend.observe_all())["engine-0"].running


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_goes_on_or_fails(phase: Phase) -> None:
    """Only an ended life fails the start."""
    if phase in (Phase.STARTING, Phase.RUNNING, Phase.STOPPING):
        refuse_an_ended_start(Observation(phase))
    else:
        with pytest.raises(StartFailedError):
            refuse_an_ended_start(Observation(phase))


async def test_only_a_restart_waits(world: World) -> None:
    """Other commands start nothing."""
    assert await await_ready(world.tools, world.job(world.command(DrainInstance))) is None
