"""The table of playbooks and the loop that runs it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from xmlrpc.client import Fault

import pytest

from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import Action, DrainInstance, RestartInstance, StepName
from gatemesh_executor.backends.base import BackendUnavailableError, StartFailedError
from gatemesh_executor.health import Health
from gatemesh_executor.playbooks import (
    LAST_TRY,
    LEAST_PATIENCE,
    PLAYBOOKS,
    StepBrokeError,
    fault_words,
    patiently,
    run_playbook,
)

from .conftest import START, World


class Told:
    """Keeps the steps that were told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep a step."""
        self.steps.append(step)


def test_every_action_has_a_playbook() -> None:
    """No command is accepted and then not understood."""
    assert set(PLAYBOOKS) == set(Action)


async def test_steps_come_in_order(world: World) -> None:
    """Out of rotation, confirmed, then stopped; never the other way round."""
    job = world.job(world.command(DrainInstance, life_id=await world.start()))
    told = Told()
    await run_playbook(world.tools, job, told, world.time.clock)
    assert told.steps == ["taken_out", "confirmed", "stopped"]


@pytest.mark.parametrize("finished", range(len(PLAYBOOKS[Action.RESTART]) + 1))
async def test_a_restart_cut_anywhere_ends_the_same(world: World, finished: int) -> None:
    """One life ends and one begins, wherever the executor was killed."""
    command = world.command(RestartInstance, life_id=await world.start())
    for step in PLAYBOOKS[Action.RESTART][:finished]:
        await step(world.tools, world.job(command))
    await run_playbook(world.tools, world.job(command), Told(), world.time.clock)
    assert (await world.backend.observe_all())["engine-0"].life_id == "life-2"


@pytest.mark.parametrize("life_id", ["life-1", None])
async def test_a_restart_done_twice_is_one_restart(world: World, life_id: str | None) -> None:
    """With and without the name of the old life."""
    await world.start()
    command = world.command(RestartInstance, life_id=life_id)
    for _ in range(2):
        await run_playbook(world.tools, world.job(command), Told(), world.time.clock)
    assert (await world.backend.observe_all())["engine-0"].life_id == "life-2"


async def test_an_outage_is_waited_out(world: World) -> None:
    """The step that met it goes on; those before are not repeated."""
    job = world.job(world.command(DrainInstance, life_id=await world.start()))
    world.backend.down = True

    def come_back() -> None:
        world.backend.down = world.time.elapsed_s < 30

    world.time.on_sleep.append(come_back)
    told = Told()
    await run_playbook(world.tools, job, told, world.time.clock)
    assert told.steps == ["taken_out", "confirmed", "stopped"]


async def test_an_outage_past_the_expiry_fails(world: World) -> None:
    """The manager decides anew, and knows why: it waits for the report until the expiry."""
    job = world.job(world.command(DrainInstance))
    world.backend.down = True
    with pytest.raises(BackendUnavailableError):
        await run_playbook(world.tools, job, Told(), world.time.clock)
    assert world.time.elapsed_s == pytest.approx(60 - LAST_TRY.total_seconds())


async def test_a_fault_near_the_expiry_is_tried_for_a_while(world: World) -> None:
    """Up to the least patience, and the last time at its end."""
    job = world.job(world.command(DrainInstance, expires_at=START))
    world.backend.down = True
    with pytest.raises(BackendUnavailableError):
        await run_playbook(world.tools, job, Told(), world.time.clock)
    assert world.time.elapsed_s == pytest.approx(LEAST_PATIENCE.total_seconds())


async def test_a_short_outage_near_the_expiry_is_forgiven(world: World) -> None:
    """A long start outlives the command's expiry; one lost answer must not fail it."""
    expired = START - timedelta(seconds=1)
    job = world.job(world.command(RestartInstance, expires_at=expired))
    calls = 0

    async def fail_once() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise BackendUnavailableError("once")
        return "done"

    assert await patiently(fail_once, job, world.time.clock, world.time.pace) == "done"
    assert world.time.elapsed_s < LEAST_PATIENCE.total_seconds()


async def test_a_lasting_fault_is_not_retried(world: World) -> None:
    """It would fail the same way."""
    world.backend.behave("engine-0", fails_to_start=True)
    job = world.job(world.command(RestartInstance))
    with pytest.raises(GatemeshError) as caught:
        await run_playbook(world.tools, job, Told(), world.time.clock)
    assert isinstance(caught.value, StartFailedError)
    assert world.time.elapsed_s == 0


async def break_down(base_url: str) -> Health:
    """Fail as nobody foresaw."""
    raise Fault(10, "BAD_NAME: engine-0")


async def break_when_let_go(base_url: str) -> Health:
    """Wait for ever, and fail while that is cleared away."""
    try:
        await asyncio.Event().wait()
    finally:
        raise PermissionError(1, "Operation not permitted")
    return Health.READY


async def drained(world: World, look: Callable[[str], Awaitable[Health]]) -> None:
    """Run a drain whose look at the engine is another."""
    await world.start()
    world.health.look = look  # type: ignore[method-assign, assignment]
    job = world.job(world.command(DrainInstance))
    await run_playbook(world.tools, job, Told(), world.time.clock)


async def test_what_nobody_foresaw_names_the_step(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The report can say it; the log has the traceback."""
    with pytest.raises(StepBrokeError) as caught:
        await drained(world, break_down)
    assert str(caught.value) == "end_life: Fault 10: BAD_NAME: engine-0"
    [line] = [one for one in caplog.records if one.msg == "step_broke"]
    assert line.exc_info is not None
    assert (vars(line)["step"], vars(line)["instance_id"]) == ("end_life", "engine-0")


async def test_what_breaks_while_a_command_is_let_go_is_no_failure(world: World) -> None:
    """The executor goes down, not the engine: the command is delivered again."""
    task = asyncio.create_task(drained(world, break_when_let_go))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Fault(10, "BAD_NAME: e"), "Fault 10: BAD_NAME: e"),
        (
            FileNotFoundError(2, "No such file or directory", "nice"),
            "FileNotFoundError: nice: No such file or directory",
        ),
        (
            PermissionError(1, "Operation not permitted"),
            "PermissionError: Operation not permitted",
        ),
        (OSError("password=secret"), "OSError; the executor's log says more"),
        (KeyError("password=secret"), "KeyError; the executor's log says more"),
    ],
    ids=["fault", "no-program", "no-right", "bare", "anything"],
)
def test_a_report_holds_no_text_of_unknown_origin(error: Exception, words: str) -> None:
    """It goes to the broker, the database and whoever is told."""
    assert fault_words(error) == words
