"""Weight ceilings, roll-backs and core dumps in the database; each history is replayed."""

from datetime import timedelta
from typing import Any

import pytest

from gatemesh_common.messages import ActionRequest, CommandReport, InstanceObserved
from gatemesh_health_manager.policy import parse_policy

from .desk import Desk

pytestmark = pytest.mark.integration

NAMES = ("engine-0", "engine-1", "engine-2", "engine-3")


async def ask(desk: Desk, action: str, name: str | None = None, **fields: Any) -> tuple[Any, ...]:
    """Ask for something, and return what became of it."""
    facts = {"timestamp": desk.clock(), "action": action, "instance_id": name, **fields}
    request = ActionRequest.model_validate({"requested_by": "alice", **facts})
    await desk.store.apply_request("requests", request)
    mine = f"WHERE message_id = '{request.message_id}'"
    return desk.rows(f"SELECT outcome, why FROM requests_v1 {mine}")[0]  # noqa: S608


async def runs(desk: Desk, version: str, *names: str, life: str = "life-1") -> None:
    """Have the executor tell of a model version."""
    for name in names:
        seen = InstanceObserved(
            timestamp=desk.clock(),
            instance_id=name,
            running=True,
            life_id=life,
            base_url="http://127.0.0.1:1",
            model_version=version,
        )
        await desk.store.apply_event("observations", seen)


def health(desk: Desk, columns: str) -> list[tuple[Any, ...]]:
    """Return columns of every instance."""
    return desk.rows(f"SELECT {columns} FROM instance_health_v1 ORDER BY instance_id")  # noqa: S608


async def test_a_ceiling_stays_until_it_is_lifted(desk: Desk) -> None:
    """Down to no traffic at all, which needs room like a drain."""
    await desk.bring_up(*NAMES[:2])
    assert await ask(desk, "set_weight", "engine-0", weight=0.25) == (
        "accepted",
        "weight at most 0.25",
    )
    assert (await ask(desk, "set_weight", "engine-0", weight=0))[0] == "accepted"
    outcome, why = await ask(desk, "set_weight", "engine-1", weight=0)
    assert outcome == "refused"
    assert "min_in_rotation" in why
    [(state, in_rotation, ceiling), _] = health(desk, "state, in_rotation, weight_ceiling")
    assert (state, in_rotation, ceiling) == ("healthy", False, 0)
    desk.clock.now += timedelta(hours=1)
    await desk.store.tick()
    assert health(desk, "weight, weight_ceiling") == [(0, 0), (1, None)]
    assert await ask(desk, "set_weight", "engine-0", weight=1) == ("accepted", "no ceiling")
    assert health(desk, "weight, weight_ceiling") == [(1, None), (1, None)]


async def test_a_new_version_is_named_and_a_person_rolls_it_back(desk: Desk) -> None:
    """The brake falls and offers it; half of the pool goes at once, the rest waits for room."""
    await desk.bring_up(*NAMES)
    await runs(desk, "v1", *NAMES)
    await runs(desk, "v2", *NAMES)
    assert health(desk, "model_version, former_version") == [("v2", "v1")] * 4
    for name in NAMES:
        await desk.judge(name, 1, check_level="L3", hard=True)
    [(braked, suspect, reason)] = desk.rows(
        "SELECT braked, suspect_version, brake_reason FROM pools_v1"
    )
    assert (braked, suspect) == (True, "v2")
    assert reason.endswith("gatemesh-ctl request roll_back --pool default --model-version v2")

    outcome, why = await ask(desk, "roll_back")
    assert outcome == "accepted"
    assert why == "; ".join(f"{name} (v2)" for name in NAMES)
    await desk.report("engine-0", life="life-1")
    await desk.report("engine-1", life="life-1")
    rows = desk.rows(
        "SELECT instance_id, playbook, status FROM incidents_v1 WHERE ended_at IS NULL"
    )
    assert sorted(rows) == [
        ("engine-0", "roll_back", "open"),
        ("engine-1", "roll_back", "open"),
        ("engine-2", "roll_back", "held"),
        ("engine-3", "roll_back", "held"),
    ]
    flying = "SELECT action, count(*) FROM commands_v1 WHERE status = 'in_flight' GROUP BY action"
    assert desk.rows(flying) == [("roll_back", 2)]
    await desk.report("engine-0", life="life-2")
    await runs(desk, "v1", "engine-0", life="life-2")
    assert desk.state("engine-0") == "probation"
    assert health(desk, "model_version, former_version")[0] == ("v1", None)


async def test_where_a_dump_lies_is_kept_with_the_incident(desk: Desk) -> None:
    """The report tells it, and the incident keeps it to its end."""
    await desk.store.use_policy(parse_policy("[defaults.condition_b]\ndump_timeout_s = 30\n"))
    await desk.bring_up(*NAMES[:2])
    await desk.judge("engine-0", 1, check_level="L3", hard=True)
    await desk.report("engine-0", life="life-1")
    desk.clock.now += timedelta(seconds=30)
    await desk.store.tick()
    [(command_id, fence)] = desk.rows(
        "SELECT command_id, fence FROM commands WHERE action = 'restart'"
    )
    [(dump_s,)] = desk.rows(
        "SELECT (body::json ->> 'dump_timeout_s')::float FROM outbox "
        "WHERE routing_key LIKE 'command.v1.restart.%'"
    )
    assert dump_s == 30
    report = CommandReport(
        timestamp=desk.clock(),
        instance_id="engine-0",
        command_id=command_id,
        action="restart",
        incarnation=1,
        fence=fence,
        outcome="succeeded",
        life_id="life-2",
        core_dump="/var/crash/engine-0_1",
    )
    await desk.store.apply_event("reports", report)
    assert desk.rows("SELECT condition, status, core_dump FROM incidents_v1") == [
        ("B", "open", "/var/crash/engine-0_1")
    ]
