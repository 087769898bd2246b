"""The fakes keep their contracts' promises (see the contract tests); here, their own hands."""

import pytest

from gatemesh_executor.backends.base import BackendUnavailableError, Ending, Phase
from gatemesh_executor.balancers.fake import FakeRotation

from .conftest import INSTANCES, World

ENGINE = INSTANCES["engine-0"]


async def test_habits_decide_how_a_life_ends(world: World) -> None:
    """At the grace it leaves, past it it is killed."""
    for drain_s, ending in ((5.0, Ending.LEFT), (5.1, Ending.KILLED)):
        life_id = await world.start()
        world.backend.behave("engine-0", drain_s=drain_s)
        assert await world.backend.stop(ENGINE, life_id, 5.0) is ending


async def test_a_crash_and_an_outage(world: World) -> None:
    """Tests reach under the platform."""
    await world.start()
    world.backend.crash("engine-0", exit_code=3)
    found = (await world.backend.observe_all())["engine-0"]
    assert (found.phase, found.exit_code) == (Phase.EXITED, 3)
    world.backend.down = True
    with pytest.raises(BackendUnavailableError):
        await world.backend.verify()


async def test_what_was_told_to_stop_still_runs(world: World) -> None:
    """Until its end, which another stop waits for."""
    life_id = await world.start()
    world.backend.tell_to_stop("engine-0")
    found = (await world.backend.observe_all())["engine-0"]
    assert (found.phase, found.life_id) == (Phase.STOPPING, life_id)
    assert await world.backend.stop(ENGINE, life_id, 5.0) is Ending.LEFT


async def test_only_what_is_out_can_be_confirmed() -> None:
    """And only up to the version that was applied."""
    rotation = FakeRotation(applied_version=3)
    assert not await rotation.is_confirmed(ENGINE, 3, 1.0)
    await rotation.take_out(ENGINE, 3)
    assert await rotation.is_confirmed(ENGINE, 3, 1.0)
    assert not await rotation.is_confirmed(ENGINE, 4, 1.0)
