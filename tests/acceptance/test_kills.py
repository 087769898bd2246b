"""Killed at any step of the loop, each service leaves the same end: one restart, nothing lost."""

import asyncio
from collections.abc import Iterator
from datetime import datetime

import aiohttp
import pytest
from tests.acceptance.fleet import Fleet, keep_asking, now, until

from gatemesh_common.messages import CheckLevel, Outcome, Reason, Verdict
from gatemesh_mesh.drills import Drill, end_drill, start_drill

pytestmark = pytest.mark.acceptance

VICTIM = "engine-2"
SERVICES = ("agent", "health_manager", "executor")
LOOPS = {"nan": ("ejected", "restarting", "probation"), "shift": ("draining", "restarting")}
"""The steps that each fault leads through."""

STEPS = [(fault, step) for fault, steps in LOOPS.items() for step in steps]
WITNESSES = 30


@pytest.fixture
def drill(fleet: Fleet) -> Iterator[None]:
    """Remove the drill file afterwards, whatever happened."""
    yield
    end_drill(fleet.plan.folder.root / "drills" / f"{VICTIM}.json")


def spoil(fleet: Fleet, fault: str) -> None:
    """Make the victim's present life emit a fault."""
    path = fleet.plan.folder.root / "drills" / f"{VICTIM}.json"
    start_drill(path, Drill(fault, pgid=fleet.pid_of(VICTIM)))


def witness(number: int) -> Verdict:
    """Return a verdict that decides nothing and must not be lost."""
    return Verdict(
        instance_id="engine-0",
        request_id=f"witness-{number}",
        timestamp=now(),
        check_level=CheckLevel.L2,
        outcome=Outcome.SKIPPED,
        reason=Reason.NO_LOGPROBS,
        type="witness",
    )


def witnesses(fleet: Fleet, since: datetime) -> int:
    """Count the witnesses in SQL since a moment."""
    return fleet.count(
        "SELECT count(*) FROM verdicts_v1 WHERE type = 'witness' AND received_at >= %(since)s",
        since=since,
    )


@pytest.mark.usefixtures("drill")
@pytest.mark.parametrize(("fault", "step"), STEPS)
@pytest.mark.parametrize("service", SERVICES)
async def test_a_kill_changes_nothing_about_the_end(
    fleet: Fleet, service: str, fault: str, step: str
) -> None:
    """SIGKILL at a step: the instance is repaired by exactly one restart, every verdict is kept."""
    since, stopped = now(), asyncio.Event()
    before = incarnation(fleet)

    async def ask(turn: int) -> None:
        try:
            await fleet.ask(f"{service} {step} {turn}", stream=turn % 2 == 0)
        except (aiohttp.ClientError, OSError):
            # The agent is the service that was killed.
            await asyncio.sleep(0.1)

    asking = asyncio.create_task(keep_asking(ask, stopped))
    try:
        await until(lambda: fleet.pid_of(service) > 0, f"{service} running")
        spoil(fleet, fault)
        await until(lambda: fleet.reached(VICTIM, step, since), f"{VICTIM} {step}")
        fleet.kill(service)
        await fleet.publish(*(witness(number) for number in range(WITNESSES)))
        await fleet.repaired(VICTIM, since)
    finally:
        stopped.set()
        await asking
    await until(lambda: witnesses(fleet, since) == WITNESSES, "every witness in SQL")
    assert fleet.commands(since, VICTIM).count("restart") == 1
    assert incarnation(fleet) == before + 1


def incarnation(fleet: Fleet) -> int:
    """Return which life the victim lives."""
    return fleet.count(
        "SELECT incarnation FROM instance_health_v1 WHERE instance_id = %(instance)s",
        instance=VICTIM,
    )
