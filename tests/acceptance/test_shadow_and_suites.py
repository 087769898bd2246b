"""Conditions C and D in the whole stack; the shadow's verdicts are published by hand."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.fleet import Fleet, now, until

from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_mesh.drills import Drill, end_drill, start_drill

pytestmark = pytest.mark.acceptance

VICTIM = "engine-1"


@pytest.fixture
def spoilt(fleet: Fleet) -> Iterator[str]:
    """Make the victim's present life answer with other tokens than it chose."""
    path = Path(fleet.plan.folder.root / "drills" / f"{VICTIM}.json")
    start_drill(path, Drill("shift", pgid=fleet.pid_of(VICTIM)))
    yield VICTIM
    end_drill(path)


async def test_condition_c_shifts_drains_restarts_and_readmits(fleet: Fleet) -> None:
    """Three disagreements in a row: traffic shifted away, drained, restarted, back."""
    since = now()
    await fleet.publish(*(disagreement(number) for number in range(2)))
    await until(lambda: disagreements(fleet, since) == 2, "two verdicts in SQL")
    assert fleet.commands(since) == []
    await fleet.publish(disagreement(2))
    await until(lambda: is_shifted(fleet), "traffic shifted away")
    await fleet.repaired(VICTIM, since)
    assert fleet.commands(since) == ["drain", "restart"]
    assert incidents(fleet, since) == [{"condition": "C", "status": "resolved"}]


async def test_condition_d_ejects_replaces_and_readmits(fleet: Fleet, spoilt: str) -> None:
    """Suites of an engine that answers wrongly fail twice in a row: out, replaced, back."""
    since = now()
    await fleet.publish(proof_wanted(spoilt))
    await until(lambda: fleet.reached(spoilt, "replacing", since), "on its way", 90)
    await fleet.settled()
    assert fleet.commands(since) == ["eject", "replace"]
    assert incidents(fleet, since) == [{"condition": "D", "status": "resolved"}]


def disagreement(number: int) -> Verdict:
    """Return what the shadow would say about an answer of the victim."""
    return Verdict(
        instance_id=VICTIM,
        request_id=f"sample-{number}",
        timestamp=now(),
        check_level=CheckLevel.L4,
        reason="replica_disagrees",
        type="shadow",
    )


def proof_wanted(instance: str) -> Verdict:
    """Return a proof that failed elsewhere, too: it counts for nothing and calls for probes."""
    return Verdict(
        instance_id=instance,
        request_id="tried-twice",
        timestamp=now(),
        check_level=CheckLevel.L3,
        hard=True,
        attribution="request",
    )


def is_shifted(fleet: Fleet) -> bool:
    """Tell whether the victim serves with the least weight."""
    query = "SELECT count(*) FROM instance_health_v1 WHERE in_rotation AND weight <= 0.1"
    return fleet.count(query) == 1


def incidents(fleet: Fleet, since: datetime) -> list[dict[str, Any]]:
    """Return condition and status of the incidents since a moment."""
    return fleet.rows(
        "SELECT condition, status FROM incidents_v1 WHERE opened_at >= %(since)s", since=since
    )


def disagreements(fleet: Fleet, since: datetime) -> int:
    """Count the shadow's verdicts in SQL since a moment."""
    query = "SELECT count(*) FROM verdicts_v1 WHERE check_level = 'L4' AND received_at >= %(since)s"
    return fleet.count(query, since=since)
