"""What waits for its back-off lies in the instance's row, and in no outbox."""

from datetime import timedelta

import pytest
from tests.history import assert_replay_agrees

from gatemesh_common.messages import ActionRequest

from .desk import Desk

pytestmark = pytest.mark.integration

RESTARTS = "SELECT count(*) FROM commands WHERE action = 'restart'"
SENT = "SELECT count(*) FROM outbox WHERE routing_key LIKE 'command.v1.restart.%'"
WANTED = """
    SELECT wanted_action, round(extract(epoch FROM wanted_from - state_since)), flight_action
    FROM instances WHERE instance_id = 'engine-0'"""


async def exit_twice(desk: Desk) -> None:
    """Have an instance end soon after its restart, so that the next one waits."""
    await desk.bring_up("engine-0", "engine-1")
    await desk.observe("engine-0", running=False)
    await desk.report("engine-0", life="life-2")
    await desk.observe("engine-0", life="life-2")
    await desk.observe("engine-0", running=False)
    assert desk.state("engine-0") == "restarting"


async def pass_time(desk: Desk, seconds: float) -> None:
    """Let time pass, and tick."""
    desk.clock.now += timedelta(seconds=seconds)
    await desk.store.tick()


async def ask(desk: Desk, action: str, **fields: str) -> None:
    """Ask as a person does."""
    known = {"timestamp": desk.clock(), "action": action, "requested_by": "ann", **fields}
    await desk.store.apply_request("requests", ActionRequest.model_validate(known))


async def test_a_restart_is_ordered_when_its_back_off_is_over(desk: Desk) -> None:
    """By the first tick then; those before write nothing. All of it can be replayed."""
    await exit_twice(desk)
    assert desk.rows(WANTED) == [("restart", 5, None)]
    before = desk.rows("SELECT xmin::text FROM instances WHERE instance_id = 'engine-0'")
    await pass_time(desk, 2)
    assert desk.rows("SELECT xmin::text FROM instances WHERE instance_id = 'engine-0'") == before
    assert (desk.rows(RESTARTS), desk.rows(SENT)) == ([(1,)], [(1,)])
    await pass_time(desk, 4)
    assert desk.rows(WANTED) == [(None, None, "restart")]
    assert (desk.rows(RESTARTS), desk.rows(SENT)) == ([(2,)], [(2,)])
    took = "SELECT available_at = issued_at FROM commands ORDER BY fence DESC LIMIT 1"
    assert desk.rows(took) == [(True,)]
    assert_replay_agrees(desk.url)


async def test_a_quarantine_leaves_nothing_that_would_restart(desk: Desk) -> None:
    """Neither a row nor a message, however long one waits."""
    await exit_twice(desk)
    await ask(desk, "quarantine", instance_id="engine-0")
    await pass_time(desk, 60)
    assert desk.rows(WANTED) == [(None, None, None)]
    assert (desk.rows(RESTARTS), desk.rows(SENT)) == ([(1,)], [(1,)])
    assert_replay_agrees(desk.url)


async def test_a_paused_pool_restarts_once_it_is_resumed(desk: Desk) -> None:
    """What is wanted stays so meanwhile."""
    await exit_twice(desk)
    await ask(desk, "pause", pool="default")
    await pass_time(desk, 60)
    assert (desk.rows(RESTARTS), desk.rows(WANTED)) == ([(1,)], [("restart", 5, None)])
    await ask(desk, "resume", pool="default")
    await pass_time(desk, 1)
    assert (desk.rows(RESTARTS), desk.rows(SENT)) == ([(2,)], [(2,)])
    assert_replay_agrees(desk.url)
