"""The store on a real database: constraints, windows, requests, views."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine
from tests.history import assert_replay_agrees

from gatemesh_common import inbox, outbox
from gatemesh_common.database import open_database
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
from gatemesh_health_manager.facts import Failure, densest_window, prompt_key
from gatemesh_health_manager.history import HistoryError
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.remembered import Failures
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_history import HistoryStore
from gatemesh_mesh.postgres import plain_url

pytestmark = pytest.mark.integration
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """Return the moment it is set to, a little later each time."""
        self.now += timedelta(milliseconds=1)
        return self.now


class Desk:
    """A store over an empty database, and what it holds."""

    def __init__(self, url: str, engine: AsyncEngine, policy: Policy) -> None:
        self.url = url
        self.clock = Hands()
        self.store = Store(engine, policy, self.clock)
        self._serial = 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(plain_url(self.url)) as connection:
            return connection.execute(query.encode()).fetchall()

    def execute(self, statement: str) -> None:
        """Change tables by hand."""
        with psycopg.connect(plain_url(self.url)) as connection:
            connection.execute(statement.encode())

    async def observe(self, name: str, life: str = "life-1", *, running: bool = True) -> None:
        """Have the executor tell of an instance."""
        seen = InstanceObserved(
            timestamp=self.clock(),
            instance_id=name,
            running=running,
            life_id=life if running else None,
            base_url="http://127.0.0.1:1",
        )
        await self.store.apply_event("observations", seen)

    async def bring_up(self, *names: str) -> None:
        """Bring instances into rotation."""
        await self.store.register_policy()
        for name in names:
            await self.observe(name)
            query = f"SELECT ticket_id FROM instances WHERE instance_id = '{name}'"  # noqa: S608
            ticket = self.rows(query)[0][0]
            await self.judge(name, 1, check_level="L5", outcome="passed", request_id=ticket)
            await self.report(name)

    async def judge(self, name: str, count: int, **fields: Any) -> list[Verdict]:
        """Hand in verdicts of distinct prompts in one batch."""
        verdicts = []
        for _ in range(count):
            self._serial += 1
            known: dict[str, Any] = {
                "timestamp": self.clock(),
                "instance_id": name,
                "request_id": f"r{self._serial}",
                "check_level": "L1",
            }
            verdicts.append(Verdict(**(known | fields)))
        await self.store.apply_verdicts("verdicts", verdicts)
        return verdicts

    async def report(self, name: str, life: str | None = None) -> None:
        """Have the executor report the command in flight."""
        query = (
            "SELECT command_id, action, fence FROM commands "  # noqa: S608
            f"WHERE instance_id = '{name}' AND status = 'in_flight'"
        )
        for command_id, action, fence in self.rows(query):
            report = CommandReport(
                timestamp=self.clock(),
                instance_id=name,
                command_id=command_id,
                action=action,
                incarnation=1,
                fence=fence,
                outcome="succeeded",
                life_id=life,
            )
            await self.store.apply_event("reports", report)

    def state(self, name: str) -> str:
        """Return the state of an instance."""
        query = f"SELECT state FROM instance_health_v1 WHERE instance_id = '{name}'"  # noqa: S608
        return str(self.rows(query)[0][0])


@pytest.fixture
async def desk(fresh_database: str) -> AsyncIterator[Desk]:
    """Give a store with the default rules."""
    upgrade(fresh_database, find_migrations(None))
    engine = open_database(fresh_database)
    yield Desk(fresh_database, engine, Policy())
    assert_replay_agrees(fresh_database)
    await engine.dispose()


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


async def test_a_window_in_sql_counts_like_the_pure_rule(desk: Desk) -> None:
    """Copies that are left out in reading change no count, whatever the rule's limits."""
    rules = "[defaults.condition_a]\nmore_than = 9999\nmax_per_prompt = {}\nwindow_s = 20\n"
    rng = random.Random(7)
    await desk.bring_up("engine-0", "engine-1")
    stored: list[Verdict] = []
    for per_prompt in (1, 2, 3):
        policy = parse_policy(rules.format(per_prompt))
        rule = policy.defaults.condition_a
        for _ in range(15):
            moments = [desk.clock() + timedelta(seconds=rng.uniform(0, 90)) for _ in range(12)]
            desk.clock.now = max([desk.clock.now, *moments])
            fresh = [
                Verdict(
                    message_id=f"m{rng.random()}",
                    timestamp=moment,
                    instance_id="engine-0",
                    request_id="r",
                    check_level="L1",
                    prompt_fingerprint=rng.choice("abcd"),
                )
                for moment in moments
            ]
            found = await counted_by_sql(desk, policy, fresh)
            stored += fresh
            failures = [Failure(v.timestamp, prompt_key(v), v in fresh) for v in stored]
            assert found == densest_window(failures, rule.window_s, per_prompt, rule.min_prompts)


async def test_windows_of_own_conditions_count_like_the_pure_rule(desk: Desk) -> None:
    """Gates, reasons, proof and tenants are picked by the database as in memory."""
    policy = parse_policy(
        """
        [[defaults.own_conditions]]
        name = "many"
        levels = ["L1", "LX"]
        window_s = 20
        more_than = 9999
        max_per_prompt = 2
        min_tenants = 2
        [[defaults.own_conditions]]
        name = "few"
        levels = ["LX"]
        reasons = ["empty"]
        hard = true
        window_s = 20
        more_than = 9999
        """
    )
    rng = random.Random(11)
    await desk.bring_up("engine-0", "engine-1")
    memory, fleet = Failures(), None
    for _ in range(15):
        moments = [desk.clock() + timedelta(seconds=rng.uniform(0, 60)) for _ in range(12)]
        desk.clock.now = max([desk.clock.now, *moments])
        fresh = [
            Verdict(
                message_id=f"m{rng.random()}",
                timestamp=moment,
                instance_id="engine-0",
                request_id="r",
                check_level=rng.choice(("L1", "LX")),
                reason=rng.choice(("empty", "reported")),
                hard=rng.random() < 0.5,
                tenant=rng.choice((None, "a", "b")),
                prompt_fingerprint=rng.choice("abcd"),
            )
            for moment in moments
        ]
        found = await counted_by_sql(desk, policy, fresh)
        if fleet is None:
            async with desk.store._deciding() as work:
                await work.load_all()
            fleet = work.fleet
        memory.note(fleet, fresh, desk.clock.now)
        assert memory.facts(policy, fleet, fresh, desk.clock.now)["engine-0"] == found
    assert {name for name, _ in found.own} == {"many", "few"}


async def test_ticks_are_replayed_in_their_order(desk: Desk) -> None:
    """Two shifts end with one tick and there is room for one: names of other lengths, too."""
    names = ("engine-2", "engine-10", "engine-1")
    await desk.bring_up(*names)
    for name in ("engine-2", "engine-10"):
        for n in range(3):
            await desk.judge(name, 1, check_level="L4", prompt_fingerprint=f"p{n}")
    desk.clock.now += timedelta(seconds=11)
    await desk.store.tick()
    states = sorted(desk.state(name) for name in names)
    assert states == ["draining", "healthy", "suspect"]


async def test_history_is_forgotten_but_for_what_the_rest_begins_with(desk: Desk) -> None:
    """The last kept fleet before the cut stays, with what came after it."""
    await desk.bring_up("engine-0", "engine-1")
    desk.clock.now += timedelta(days=2)
    await desk.store.remember_fleet()
    desk.clock.now += timedelta(days=2)
    await desk.judge("engine-0", 6)
    desk.clock.now += timedelta(days=2)
    assert await desk.store.forget_history(timedelta(days=3)) > 0
    kinds = [kind for (kind,) in desk.rows("SELECT kind FROM decision_inputs ORDER BY id")]
    assert kinds == ["fleet", "verdicts"]
    assert await desk.store.forget_history(timedelta(days=3)) == 0


async def test_rules_of_another_release_are_named(desk: Desk) -> None:
    """A key that is gone ends no replay with a traceback, and none of a time without it."""
    await desk.bring_up("engine-0", "engine-1")
    desk.execute("UPDATE policy_versions SET body = body || '{\"gone\": 1}'")
    with HistoryStore(desk.url) as store, pytest.raises(HistoryError, match="gone"):
        store.read(NOW, NOW + timedelta(days=1))
    desk.execute("UPDATE policy_versions SET body = body - 'gone'")


async def counted_by_sql(desk: Desk, policy: Policy, fresh: list[Verdict]) -> Any:
    """Insert verdicts and return the facts that the database gives."""
    engine = open_database(desk.url)
    store = Store(engine, policy, desk.clock)
    async with store._deciding() as work:
        await work.load({"engine-0": None})
        facts = await work.store_verdicts(fresh)
    await engine.dispose()
    return facts["engine-0"]


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
