"""The steps of a drain."""

from dataclasses import replace

import pytest

from gatemesh_common.messages import DrainInstance, ReadmitInstance, RestartInstance
from gatemesh_executor.balancers.base import BalancerUnavailableError
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.drain import (
    COUNT_EVERY_S,
    TEAR_DOWN_S,
    confirm_out,
    end_life,
    fitting_grace_s,
    let_end,
    put_back,
    take_out,
)
from gatemesh_executor.health import Health
from gatemesh_executor.instances import Instance

from .conftest import World


class SilentRotation(FakeRotation):
    """A balancer that answers no more."""

    async def sessions(self, instance: Instance) -> int | None:
        """Fail."""
        raise BalancerUnavailableError("silence")


async def test_out_and_back(world: World) -> None:
    """Each may come twice."""
    job = world.job(world.command(ReadmitInstance))
    for _ in range(2):
        assert await take_out(world.tools, job) == "taken_out"
    assert world.rotation.out == {"engine-0"}
    for _ in range(2):
        assert await put_back(world.tools, job) == "put_back"
    assert world.rotation.out == set()


@pytest.mark.parametrize(("applied", "step"), [(6, "unconfirmed"), (7, "confirmed")])
async def test_confirmation_is_told_as_it_is(world: World, applied: int, step: str) -> None:
    """A drain goes on without it, and the history shows that."""
    job = world.job(world.command(DrainInstance, routing_version=7))
    world.rotation.applied_version = applied
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


async def drained(world: World, *counts: int, grace_s: float = 60.0) -> float:
    """Drain an engine with so many requests under way at each look; return how long it took."""
    world.rotation.counts = list(counts)
    job = world.job(world.command(DrainInstance, grace_s=grace_s, life_id=await world.start()))
    begun = world.time.elapsed_s
    await end_life(world.tools, job)
    return world.time.elapsed_s - begun


async def test_the_stop_waits_for_requests_behind_balancers(world: World) -> None:
    """Until none is left; where nobody counts, the engine itself waits."""
    world.backend.behave("engine-0", drain_s=0.0)
    assert await drained(world, 3, 2, 1, 0) == pytest.approx(3 * COUNT_EVERY_S)


async def test_nobody_is_waited_for_where_nobody_counts(world: World) -> None:
    """Agents alone: as it was."""
    world.backend.behave("engine-0", drain_s=0.0)
    assert await drained(world) == 0


async def test_the_wait_leaves_the_engine_its_part_of_the_grace(world: World) -> None:
    """One that needs just that leaves by itself, one that needs more is killed at the grace."""
    world.rotation.counts = [1] * 1000
    for drain_s, step in ((TEAR_DOWN_S - 0.3, "stopped"), (TEAR_DOWN_S + 0.3, "killed")):
        life_id = await world.start()
        world.backend.behave("engine-0", drain_s=drain_s)
        job = world.job(world.command(DrainInstance, grace_s=60, life_id=life_id))
        begun = world.time.elapsed_s
        assert await end_life(world.tools, job) == step
        assert world.time.elapsed_s - begun <= 60.0 + COUNT_EVERY_S


async def test_a_repeated_step_waits_no_longer(world: World) -> None:
    """A backend that was away in between does not double the grace."""
    world.rotation.counts = [1] * 1000
    world.backend.behave("engine-0", drain_s=0.0)
    job = world.job(world.command(DrainInstance, grace_s=60, life_id=await world.start()))
    await let_end(world.tools, job, 60.0)
    left_at = world.time.elapsed_s
    assert await let_end(world.tools, job, 60.0) == pytest.approx(55.0, abs=COUNT_EVERY_S)
    assert world.time.elapsed_s == left_at


async def test_silence_of_a_balancer_is_no_end(world: World) -> None:
    """Its requests may be running; only the grace ends the wait."""
    job = world.job(world.command(DrainInstance, grace_s=10))
    tools = replace(world.tools, rotation=SilentRotation())
    assert await let_end(tools, job, 10.0) == pytest.approx(5.0, abs=COUNT_EVERY_S)


async def test_what_a_person_keeps_out_is_told(world: World) -> None:
    """The report of the readmission says so."""
    world.rotation.notes = ("front: b/s stays in maintenance",)
    job = world.job(world.command(ReadmitInstance))
    await put_back(world.tools, job)
    assert job.notes == ["front: b/s stays in maintenance"]


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
    await world.start()
    world.health.answer = health
    job = world.job(world.command(DrainInstance, grace_s=asked_s))
    assert await fitting_grace_s(world.tools, job) == given_s


async def test_a_stop_that_comes_again_leaves_running_requests_their_time(world: World) -> None:
    """An engine closes its door when it is told to stop; the requests inside go on."""
    life_id = await world.start()
    world.backend.behave("engine-0", drain_s=30)
    world.backend.tell_to_stop("engine-0")
    world.health.answer = Health.REFUSED
    job = world.job(world.command(RestartInstance, life_id=life_id, grace_s=60))
    assert await end_life(world.tools, job) == "stopped"
    assert not job.killed


async def test_a_repeated_step_goes_by_what_was_seen_before_the_stop(world: World) -> None:
    """An engine that never served may have lost the SIGTERM: it gets no more time than before."""
    await world.start()
    job = world.job(world.command(RestartInstance, grace_s=60))
    world.health.answer = Health.REFUSED
    assert await fitting_grace_s(world.tools, job) == 5
    world.backend.tell_to_stop("engine-0")
    assert await fitting_grace_s(world.tools, job) == 5


async def test_an_engine_that_began_to_serve_keeps_its_time(world: World) -> None:
    """What was seen of it earlier holds no longer."""
    await world.start()
    job = world.job(world.command(RestartInstance, grace_s=60))
    world.health.answer = Health.REFUSED
    await fitting_grace_s(world.tools, job)
    world.health.answer = Health.READY
    assert await fitting_grace_s(world.tools, job) == 60
    world.health.answer = Health.REFUSED
    world.backend.tell_to_stop("engine-0")
    assert await fitting_grace_s(world.tools, job) == 60
