"""The steps of a drain."""

import pytest

from gatemesh_common.messages import DrainInstance, ReadmitInstance, RestartInstance
from gatemesh_executor.drain import confirm_out, end_life, fitting_grace_s, put_back, take_out
from gatemesh_executor.health import Health

from .conftest import World


async def test_out_and_back(world: World) -> None:
    """Each may come twice."""
    job = world.job(world.command(ReadmitInstance))
    for _ in range(2):
        assert await take_out(world.tools, job) == "taken_out"
    assert world.balancer.out == {"engine-0"}
    for _ in range(2):
        assert await put_back(world.tools, job) == "put_back"
    assert world.balancer.out == set()


@pytest.mark.parametrize(("applied", "step"), [(6, "unconfirmed"), (7, "confirmed")])
async def test_confirmation_is_told_as_it_is(world: World, applied: int, step: str) -> None:
    """A drain goes on without it, and the history shows that."""
    job = world.job(world.command(DrainInstance, routing_version=7))
    world.balancer.applied_version = applied
    await take_out(world.tools, job)
    assert await confirm_out(world.tools, job) == step


async def test_only_commands_with_a_table_are_confirmed(world: World) -> None:
    """A restart names no table."""
    assert await confirm_out(world.tools, world.job(world.command(RestartInstance))) is None


async def test_the_named_life_ends(world: World) -> None:
    """It leaves within its grace."""
    job = world.job(world.command(DrainInstance, life_id=await world.start()))
    assert await end_life(world.tools, job) == "stopped"
    assert not job.killed


async def test_a_drain_of_what_is_stopped_is_stopped(world: World) -> None:
    """Redelivered after the stop, it tells the same."""
    job = world.job(world.command(DrainInstance, life_id="life-1"))
    assert await end_life(world.tools, job) == "stopped"


async def test_a_restart_of_what_is_stopped_tells_of_no_stop(world: World) -> None:
    """The drain before has told it."""
    job = world.job(world.command(RestartInstance, life_id="life-1"))
    assert await end_life(world.tools, job) is None


async def test_a_kill_is_remembered(world: World) -> None:
    """The report says that requests were cut."""
    life_id = await world.start()
    world.backend.behave("engine-0", drain_s=61)
    job = world.job(world.command(DrainInstance, life_id=life_id, grace_s=60))
    assert await end_life(world.tools, job) == "killed"
    assert job.killed


async def test_another_life_goes_on(world: World) -> None:
    """The order is done already; only leavings of the named life are looked for."""
    life_id = await world.start()
    job = world.job(world.command(RestartInstance, life_id="older"))
    assert await end_life(world.tools, job) is None
    assert (await world.backend.observe_all())["engine-0"].life_id == life_id


@pytest.mark.parametrize(
    ("health", "asked_s", "given_s"),
    [
        (Health.READY, 60, 60),
        (Health.NOT_READY, 60, 60),
        (Health.REFUSED, 60, 5),
        (Health.REFUSED, 1, 1),
    ],
)
async def test_who_serves_nobody_gets_little_time(
    world: World, health: Health, asked_s: float, given_s: float
) -> None:
    """An engine that is starting may lose a SIGTERM for good."""
    world.health.answer = health
    job = world.job(world.command(DrainInstance, grace_s=asked_s))
    assert await fitting_grace_s(world.tools, job) == given_s
