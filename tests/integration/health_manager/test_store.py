"""The store on a real database: constraints, windows, requests, views."""

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine

from gatemesh_common import inbox, outbox
from gatemesh_common.messages import (
    ActionRequest,
    CommandReport,
    InstanceObserved,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    Verdict,
)
from gatemesh_health_manager import store_tables
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import Policy

from .desk import NOW, Desk

pytestmark = pytest.mark.integration


async def test_the_whole_loop_leaves_its_history(desk: Desk) -> None:
    """Detect, isolate, repair, prove, readmit: every step is in the views."""
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 6)
    assert desk.state("engine-0") == "draining"
    await desk.report("engine-0")
    assert desk.state("engine-0") == "restarting"
    await desk.report("engine-0", life="life-2")
    assert desk.state("engine-0") == "probation"
    ticket = desk.rows("SELECT ticket_id FROM instances WHERE instance_id = 'engine-0'")[0][0]
    await desk.judge("engine-0", 1, check_level="L5", outcome="passed", request_id=ticket)
    assert desk.state("engine-0") == "healthy"
    steps = desk.rows(
        "SELECT trigger FROM transitions_v1 WHERE instance_id = 'engine-0' ORDER BY id"
    )
    assert [trigger for (trigger,) in steps] == [
        "observed",
        "probes_passed",
        "condemned",
        "drained",
        "started",
        "probes_passed",
    ]
    assert desk.rows("SELECT status, cause, reason, incarnation FROM incidents_v1") == [
        ("resolved", "6 failures of 6 prompts, last: reported", "repaired", 1)
    ]
    commands = desk.rows(
        "SELECT action, status, fence FROM commands_v1 WHERE instance_id = 'engine-0' "
        "ORDER BY fence"
    )
    assert commands == [
        ("readmit", "succeeded", 1),
        ("drain", "succeeded", 2),
        ("restart", "succeeded", 3),
        ("readmit", "in_flight", 4),
    ]
    assert desk.rows("SELECT DISTINCT policy_version FROM transitions_v1") == [(Policy().version,)]
    assert desk.rows("SELECT count(*) FROM timeline_v1")[0][0] > 10


async def test_a_batch_sees_its_own_decisions(desk: Desk) -> None:
    """Proof against both of two instances in one batch takes out one."""
    await desk.bring_up("engine-0", "engine-1")
    proofs = [
        Verdict(
            timestamp=desk.clock(),
            instance_id=name,
            request_id=name,
            check_level="L3",
            hard=True,
        )
        for name in ("engine-0", "engine-1")
    ]
    await desk.store.apply_verdicts("verdicts", proofs)
    assert [desk.state(name) for name in ("engine-0", "engine-1")] == ["ejected", "suspect"]
    assert desk.rows("SELECT status FROM incidents_v1 WHERE instance_id = 'engine-1'") == [
        ("held",)
    ]


async def test_two_transactions_never_empty_a_pool(desk: Desk, fresh_database: str) -> None:
    """The pool is locked: the second one sees that the first has gone."""
    await desk.bring_up("engine-0", "engine-1")
    await asyncio.gather(
        *(desk.judge(name, 1, check_level="L3", hard=True) for name in ("engine-0", "engine-1"))
    )
    states = sorted(desk.state(name) for name in ("engine-0", "engine-1"))
    assert states == ["ejected", "suspect"]
    assert fresh_database == desk.url


async def test_requests_are_kept_with_their_answers(desk: Desk) -> None:
    """Who asked what, and what became of it."""
    await desk.bring_up("engine-0", "engine-1")

    async def ask(action: str, instance_id: str | None = None, pool: str = "default") -> None:
        request = ActionRequest.model_validate(
            {
                "timestamp": desk.clock(),
                "action": action,
                "instance_id": instance_id,
                "pool": pool,
                "requested_by": "alice",
            }
        )
        await desk.store.apply_request("requests", request)
        await desk.store.apply_request("requests", request)

    await ask("pause")
    await ask("pause", pool="no-such-pool")
    await ask("drain", "no-such-engine")
    await ask("drain", "engine-0")
    await ask("drain", "engine-1")
    await ask("resume")
    answers = desk.rows("SELECT action, outcome, why FROM requests_v1 ORDER BY decided_at")
    assert [(action, outcome) for action, outcome, _ in answers] == [
        ("pause", "accepted"),
        ("pause", "refused"),
        ("drain", "refused"),
        ("drain", "accepted"),
        ("drain", "refused"),
        ("resume", "accepted"),
    ]
    assert "min_in_rotation" in answers[4][2]
    assert desk.rows("SELECT count(*) FROM pools") == [(1,)]
    assert desk.rows("SELECT paused FROM pools") == [(False,)]


async def test_a_tick_acts_on_what_is_due(desk: Desk) -> None:
    """Nobody answers the probes of a proof."""
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 1, check_level="L3", hard=True)
    await desk.report("engine-0")
    await desk.store.tick()
    assert desk.state("engine-0") == "ejected"
    desk.clock.now += timedelta(seconds=21)
    await desk.store.tick()
    assert desk.state("engine-0") == "restarting"


async def test_traffic_comes_back_step_by_step(desk: Desk) -> None:
    """The ramp is driven by ticks over stored moments, whichever manager ticks."""
    await desk.bring_up("engine-0", "engine-1")
    [before] = await desk.store.routing_tables()
    assert {row.weight for row in before.instances} == {0.3}
    desk.clock.now += timedelta(seconds=15)
    await desk.store.tick()
    assert desk.rows("SELECT weight FROM instance_health_v1") == [(0.6,), (0.6,)]
    desk.clock.now += timedelta(seconds=15)
    await desk.store.tick()
    [after] = await desk.store.routing_tables()
    assert {row.weight for row in after.instances} == {0.9}
    assert after.version > before.version


async def test_flapping_is_remembered(desk: Desk) -> None:
    """Out and back three times, each in transactions of its own; the fourth time is the last."""
    await desk.bring_up("engine-0", "engine-1")
    life = 1
    for _ in range(3):
        await desk.judge("engine-0", 6)
        await desk.report("engine-0")
        desk.clock.now += timedelta(seconds=20)
        await desk.store.tick()
        life += 1
        await desk.report("engine-0", life=f"life-{life}")
        ticket = desk.rows("SELECT ticket_id FROM instances WHERE instance_id = 'engine-0'")[0][0]
        await desk.judge("engine-0", 1, check_level="L5", outcome="passed", request_id=ticket)
        await desk.report("engine-0")
        assert desk.state("engine-0") == "healthy"
        desk.clock.now += timedelta(seconds=600)
    await desk.judge("engine-0", 6)
    assert desk.state("engine-0") == "quarantined"
    ended = "SELECT reason FROM incidents_v1 WHERE status = 'quarantined'"
    assert desk.rows(ended) == [("taken out 4 times within 3600 s",)]


async def test_a_quiet_tick_writes_nothing(desk: Desk) -> None:
    """Time alone costs no rows once the weights have risen."""
    await desk.bring_up("engine-0", "engine-1")
    desk.clock.now += timedelta(seconds=40)
    await desk.store.tick()
    before = desk.rows("SELECT xmin::text FROM instances ORDER BY instance_id")
    await desk.store.tick()
    assert desk.rows("SELECT xmin::text FROM instances ORDER BY instance_id") == before


async def test_routing_tables_are_whole_and_versioned(desk: Desk) -> None:
    """What the heartbeat repeats."""
    assert await desk.store.routing_tables() == []
    await desk.bring_up("engine-0", "engine-1")
    [table] = await desk.store.routing_tables()
    version = desk.rows("SELECT routing_version FROM pools")[0][0]
    assert (table.version, table.pool) == (version, "default")
    assert [row.in_rotation for row in table.instances] == [True, True]


async def test_records_are_written_once(desk: Desk) -> None:
    """Steps, telemetry and refused client requests."""
    common: dict[str, Any] = {
        "timestamp": NOW,
        "instance_id": "engine-0",
        "pool": "p",
        "incarnation": 1,
    }
    messages = [
        StepFinished(**common, message_id="s", command_id="c", step="stopped"),
        RequestRejected(**common, message_id="r", agent_id="a", request_id="q", cause="draining"),
        TelemetryWindow(
            **common, message_id="t", agent_id="a", window_start=NOW, window_end=NOW, requests=3
        ),
    ]
    for _ in range(2):
        await desk.store.apply_records("records", messages)
    assert desk.rows("SELECT count(*) FROM command_steps") == [(1,)]
    assert desk.rows("SELECT client_saw_error FROM rejected_requests_v1") == [(True,)]
    assert desk.rows("SELECT requests FROM telemetry_windows") == [(3,)]


async def test_an_instance_moves_to_another_pool(desk: Desk) -> None:
    """Named by an alert first, observed elsewhere later."""
    await desk.store.register_policy()
    await desk.judge("engine-0", 1)
    seen = InstanceObserved(
        timestamp=desk.clock(),
        instance_id="engine-0",
        pool="chat",
        running=True,
        life_id="life-1",
        base_url="http://127.0.0.1:1",
    )
    await desk.store.apply_event("observations", seen)
    assert desk.rows("SELECT pool, state FROM instance_health_v1") == [("chat", "probation")]
    tables = {table.pool: len(table.instances) for table in await desk.store.routing_tables()}
    assert tables == {"chat": 1, "default": 0}


async def test_a_forgery_is_seen_and_ends_nothing(desk: Desk) -> None:
    """It bears the id of the command in flight, a fence out of this world and a stranger's name."""
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 6)
    [(command_id, fence)] = desk.rows(
        "SELECT command_id, fence FROM commands_v1 WHERE status = 'in_flight'"
    )
    known: dict[str, Any] = {"outcome": "refused", "ends_command": False, "action": "drain"}
    facts = {**known, "command_id": command_id, "incarnation": 1}
    for instance_id, reason in (
        ("engine-0", "bad_signature"),
        ("engine-0", "duplicate"),
        ("not-ours", "unknown_key: 'k'"),
    ):
        forged = CommandReport(
            timestamp=desk.clock(), instance_id=instance_id, reason=reason, fence=10**30, **facts
        )
        for _ in range(2):
            await desk.store.apply_event("reports", forged)
    seen = desk.rows(
        "SELECT instance_id, reason, detail, ends_command, command_id, fence::text "
        "FROM refused_commands_v1 ORDER BY received_at"
    )
    told = (False, command_id, str(10**30))
    assert seen == [
        ("engine-0", "bad_signature", "", *told),
        ("engine-0", "duplicate", "", *told),
        ("not-ours", "unknown_key", "'k'", *told),
    ]
    assert desk.rows("SELECT DISTINCT instance_id FROM instances ORDER BY 1") == [
        ("engine-0",),
        ("engine-1",),
    ]
    query = f"SELECT status, reason, reported_at FROM commands_v1 WHERE command_id = '{command_id}'"  # noqa: S608
    assert desk.rows(query) == [("in_flight", "", None)]
    await desk.report("engine-0")
    assert desk.state("engine-0") == "restarting"
    fences = desk.rows("SELECT max(fence) FROM commands WHERE instance_id = 'engine-0'")
    assert fences == [(fence + 1,)]


async def test_a_refused_order_ends_and_is_seen_twice(desk: Desk) -> None:
    """With its command, and among the refusals."""
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 6)
    [(command_id,)] = desk.rows("SELECT command_id FROM commands WHERE status = 'in_flight'")
    report = CommandReport(
        timestamp=desk.clock(),
        instance_id="engine-0",
        command_id=command_id,
        action="drain",
        incarnation=1,
        fence=2,
        outcome="refused",
        reason="expired",
    )
    await desk.store.apply_event("reports", report)
    query = f"SELECT status, reason FROM commands_v1 WHERE command_id = '{command_id}'"  # noqa: S608
    assert desk.rows(query) == [("refused", "expired")]
    assert desk.rows("SELECT reason, ends_command FROM refused_commands_v1") == [("expired", True)]


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE instances SET state = 'well'", "instances_state_check"),
        ("UPDATE instances SET weight = 0", "traffic_only_in_rotation"),
        ("UPDATE instances SET incarnation = 0", "only_known_lives_serve"),
        ("UPDATE instances SET ticket_id = 't'", "ticket_is_whole"),
        (
            "INSERT INTO commands SELECT command_id || 'x', instance_id, pool, incarnation, "
            "action, fence + 9, life_id, incident_id, status, reason, issued_at, available_at, "
            "due_at, ended_at FROM commands WHERE status = 'in_flight'",
            "one_command_in_flight",
        ),
        (
            "INSERT INTO incidents SELECT incident_id || 'x', instance_id, pool, incarnation, "
            "condition, status, playbook, cause, reason, policy_version, opened_at, ended_at "
            "FROM incidents",
            "one_incident_at_a_time",
        ),
        ("UPDATE incidents SET ended_at = now()", "ended_when_over"),
        (
            "UPDATE transitions SET after_state = 'healthy' WHERE before_state = 'starting'",
            "only_probes_and_clearance_lead_to_traffic",
        ),
        ("UPDATE commands SET fence = 1", "fences_only_rise"),
    ],
)
async def test_the_database_repeats_the_promises(
    desk: Desk, statement: str, constraint: str
) -> None:
    """Even a manager with a fault cannot break them."""
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-1", 6)
    with pytest.raises(psycopg.errors.IntegrityError) as caught:
        desk.rows(f"{statement} RETURNING 1")
    assert caught.value.diag.constraint_name == constraint


def test_code_and_migrations_agree(fresh_database: str) -> None:
    """Every column that statements name is there."""
    upgrade(fresh_database, find_migrations(None))
    known = MetaData()
    for table in (*store_tables.METADATA.tables.values(), inbox.INBOX, outbox.OUTBOX):
        table.to_metadata(known)
    engine = create_engine(fresh_database)
    with engine.connect() as connection:
        changes = compare_metadata(MigrationContext.configure(connection), known)
    engine.dispose()
    missing = [change for change in changes if change[0] in ("add_table", "add_column")]
    assert missing == []
