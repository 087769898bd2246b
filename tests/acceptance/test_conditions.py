"""One test per rollback condition, and what must not trip one."""

import asyncio
import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from tests.acceptance.fleet import LOOP_DEADLINE_S, Fleet, keep_asking, now, until

from gatemesh_common.messages import CheckLevel, Reason, Verdict
from gatemesh_mesh.drills import Drill, end_drill, start_drill

pytestmark = pytest.mark.acceptance

VICTIM = "engine-1"


@pytest.fixture
def victim_drill(fleet: Fleet) -> Iterator[str]:
    """Remove the drill file afterwards, whatever happened."""
    yield VICTIM
    end_drill(drill_path(fleet))


def drill_path(fleet: Fleet) -> Path:
    """Return the victim's drill file."""
    return fleet.plan.folder.root / "drills" / f"{VICTIM}.json"


def spoil(fleet: Fleet, fault: str) -> None:
    """Make the victim's present life emit a fault."""
    start_drill(drill_path(fleet), Drill(fault, pgid=fleet.pid_of(VICTIM)))


async def under_traffic(fleet: Fleet, instance: str) -> list[int]:
    """Send varied requests until an instance was repaired; return the statuses."""
    since, stopped, statuses = now(), asyncio.Event(), []

    async def ask(turn: int) -> None:
        status, _, _ = await fleet.ask(f"question number {turn}", stream=turn % 2 == 0)
        statuses.append(status)

    asking = asyncio.create_task(keep_asking(ask, stopped))
    try:
        await fleet.repaired(instance, since)
    finally:
        stopped.set()
        await asking
    return statuses


async def test_condition_b_ejects_confirms_restarts_and_readmits(
    fleet: Fleet, victim_drill: str
) -> None:
    """NaN logits are proof: out at once, restarted, proven clean, back; no client sees an error."""
    since = now()
    spoil(fleet, "nan")
    statuses = await under_traffic(fleet, victim_drill)
    assert fleet.commands(since) == ["eject", "restart"]
    assert fleet.reached(victim_drill, "ejected", since)
    assert set(statuses) == {200}
    [incident] = fleet.rows(
        "SELECT condition, status FROM incidents_v1 WHERE opened_at >= %(since)s", since=since
    )
    assert incident == {"condition": "B", "status": "resolved"}


async def test_condition_a_drains_restarts_and_readmits(fleet: Fleet) -> None:
    """Six failures of six prompts within a minute: drained with grace, restarted, back."""
    since = now()
    await fleet.publish(*(alert(f"request-{number}") for number in range(5)))
    await until(lambda: stored(fleet, since) == 5, "five verdicts in SQL")
    assert fleet.commands(since) == []
    await fleet.publish(alert("request-5"))
    await fleet.repaired(VICTIM, since)
    assert fleet.commands(since) == ["drain", "restart"]
    [incident] = fleet.rows(
        "SELECT condition, status FROM incidents_v1 WHERE opened_at >= %(since)s", since=since
    )
    assert incident == {"condition": "A", "status": "resolved"}


async def test_condition_a_sees_a_fault_that_only_text_shows(
    fleet: Fleet, victim_drill: str
) -> None:
    """Shifted token ids look sure of themselves: L1 sees the text, A acts."""
    since = now()
    spoil(fleet, "shift")
    await under_traffic(fleet, victim_drill)
    assert fleet.commands(since) == ["drain", "restart"]


async def test_one_bad_prompt_takes_nobody_out(fleet: Fleet) -> None:
    """Copies of one prompt count once, and client errors never count."""
    since = now()
    for _ in range(12):
        await fleet.ask("always the same", headers={"X-Sim-Fault": "replacement"})
        status, _, _ = await fleet.ask("hello", max_tokens=-1)
        assert status == 400
    await until(lambda: stored(fleet, since) >= 12, "twelve verdicts in SQL")
    assert fleet.commands(since) == []
    assert (
        fleet.count("SELECT count(*) FROM incidents_v1 WHERE opened_at >= %(since)s", since=since)
        == 0
    )


async def test_a_poisonous_prompt_takes_nobody_out(fleet: Fleet) -> None:
    """NaN on every engine is the request's fault: another engine was asked."""
    since = now()
    for turn in range(20):
        status, body, _ = await fleet.ask(
            "poisonous", stream=turn % 2 == 0, headers={"X-Sim-Fault": "nan"}
        )
        assert status == 200, body
    await until(lambda: stored(fleet, since) >= 20, "twenty verdicts in SQL")
    assert fleet.commands(since) == []
    assert opened(fleet, since) == 0


async def test_a_proof_that_probes_refute_restarts_nobody(fleet: Fleet) -> None:
    """A proof that nobody else shares costs seconds of rotation and no restart."""
    since = now()
    proof = {"check_level": CheckLevel.L3, "reason": Reason.NAN_LOGITS, "hard": True}
    await fleet.publish(alert("doubtful").model_copy(update=proof))
    await until(lambda: "eject" in fleet.commands(since), "ejected")
    await fleet.settled()
    assert "restart" not in fleet.commands(since)
    incidents = fleet.rows(
        "SELECT reason FROM incidents_v1 WHERE opened_at >= %(since)s", since=since
    )
    assert {incident["reason"] for incident in incidents} == {"refuted"}


@pytest.mark.timeout(400)
async def test_a_hung_engine_is_taken_out(fleet: Fleet) -> None:
    """A stopped process keeps its connections; the watchdog misses its tokens."""
    since, pid = now(), fleet.pid_of(VICTIM)
    os.kill(pid, signal.SIGSTOP)
    asking = [
        asyncio.create_task(fleet.ask(f"question number {turn}", stream=True)) for turn in range(12)
    ]
    try:
        await until(lambda: fleet.reached(VICTIM, "ejected", since), "ejected", LOOP_DEADLINE_S)
    finally:
        # The executor would do so after the grace: a stopped process heeds nothing else.
        os.kill(pid, signal.SIGKILL)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    [verdict] = fleet.rows(
        """SELECT instance_id, hard FROM verdicts_v1
        WHERE reason = 'stalled' AND received_at >= %(since)s""",
        since=since,
    )
    assert verdict == {"instance_id": VICTIM, "hard": True}


def opened(fleet: Fleet, since: datetime) -> int:
    """Count the incidents since a moment."""
    query = "SELECT count(*) FROM incidents_v1 WHERE opened_at >= %(since)s"
    return fleet.count(query, since=since)


def alert(request_id: str) -> Verdict:
    """Return what a person would publish by hand about the victim."""
    return Verdict(
        instance_id=VICTIM,
        request_id=request_id,
        timestamp=now(),
        check_level=CheckLevel.L1,
        type="by hand",
        details={"seen": "garbage"},
    )


def stored(fleet: Fleet, since: datetime) -> int:
    """Count the failures in SQL since a moment."""
    return fleet.count(
        "SELECT count(*) FROM verdicts_v1 WHERE outcome = 'failed' AND received_at >= %(since)s",
        since=since,
    )
