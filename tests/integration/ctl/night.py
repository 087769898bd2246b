"""A night of three instances, decided by the manager's own code, on a database whose clock stands.

At 02:52 engine-0 emits garbage and is repaired, at 02:55 a person takes engine-1 out, at 02:57
there is proof against engine-2, which must stay: it is the last but one. It is 03:05 now.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.database import open_database
from gatemesh_common.messages import (
    ActionRequest,
    CommandReport,
    InstanceMessage,
    InstanceObserved,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    TrialRequest,
    Verdict,
)
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.store import Store
from gatemesh_mesh.postgres import plain_url

POOL = "chat"
THREE = datetime(2026, 11, 30, 3, 5, tzinfo=UTC)
"""What the database takes for now."""
STANDING_CLOCK = f"""
    CREATE SCHEMA night;
    GRANT USAGE ON SCHEMA night TO PUBLIC;
    CREATE FUNCTION night.now() RETURNS timestamptz LANGUAGE sql STABLE
        AS $$ SELECT '{THREE.isoformat()}'::timestamptz $$"""
BASELINE = """
    INSERT INTO baselines (pool, model_version, version, shadow_share, entries, changed_at)
    VALUES ('chat', 'chat-8b-2', 7, 0, '[{"metric": "surprisal", "decoding": "greedy",
        "script": "latin", "count": 1840, "median": 0.31, "mad": 0.07}]',
        '2026-11-30 02:31:00+00')"""
GARBAGE = (
    ("replacement_chars", 0.2, 0.0),
    ("repetition", 0.93, 0.4),
    ("repetition", 0.91, 0.4),
    ("script_salad", 3.0, 1.0),
    ("repetition", 0.97, 0.4),
    ("repetition", 0.88, 0.4),
)


def stand_still(url: str) -> None:
    """Let now() be five past three for whatever is made in this database, and whoever asks it."""
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        connection.execute(STANDING_CLOCK.encode())
        path = f'ALTER DATABASE "{name}" SET search_path TO night, pg_catalog'
        connection.execute(path.encode())


def record_night(url: str) -> None:
    """Migrate an empty database and play the night into it."""
    stand_still(url)
    upgrade(url, find_migrations(None))
    asyncio.run(play(url))
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        connection.execute(BASELINE.encode())


async def play(url: str) -> None:
    """Play the night."""
    engine = open_database(url)
    try:
        night = Night(url, engine)
        await night.evening()
        await night.garbage()
        await night.people()
        await night.proof()
    finally:
        await engine.dispose()


class Night:
    """Hands the manager's store what services would have sent, at the moments of the night."""

    def __init__(self, url: str, engine: AsyncEngine) -> None:
        self.url = url
        self.now = THREE
        self.store = Store(engine, Policy(), lambda: self.now)
        self._serial = 0

    def at(self, clock: str) -> None:
        """Set the clock."""
        self.now = datetime.fromisoformat(f"2026-11-30T{clock}+00:00")

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def fields(self, instance_id: str) -> dict[str, Any]:
        """Return what every message has."""
        self._serial += 1
        return {
            "message_id": f"m-{self._serial}",
            "timestamp": self.now,
            "instance_id": instance_id,
            "pool": POOL,
        }

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(plain_url(self.url)) as connection:
            return connection.execute(query.encode()).fetchall()

    async def write(self, kind: type[InstanceMessage], instance_id: str, **facts: Any) -> None:
        """Have something written down that nothing is decided about."""
        message = kind.model_validate(self.fields(instance_id) | facts)
        await self.store.apply_records("records", [message])

    async def observe(self, instance_id: str, life: str) -> None:
        """Have the executor tell of an instance."""
        seen = InstanceObserved(
            **self.fields(instance_id),
            running=True,
            life_id=life,
            base_url=f"http://10.0.0.1{instance_id[-1]}:8000",
            model_version="chat-8b-2",
        )
        await self.store.apply_event("observations", seen)

    async def judge(self, instance_id: str, level: str, **facts: Any) -> None:
        """Hand in one verdict."""
        known = {"request_id": f"r-{self._serial + 1}", "check_level": level}
        verdict = Verdict(**(self.fields(instance_id) | known | facts))
        await self.store.apply_verdicts("verdicts", [verdict])

    async def probe(self, instance_id: str) -> None:
        """Have the probe suite that was asked for pass."""
        query = f"SELECT ticket_id FROM instances WHERE instance_id = '{instance_id}'"  # noqa: S608
        [(ticket,)] = self.rows(query)
        await self.judge(instance_id, "L5", outcome="passed", request_id=ticket, reason="clean")

    async def obey(self, instance_id: str, *steps: tuple[str, float], life: str | None) -> None:
        """Have the executor obey the command in flight, step by step."""
        query = (
            "SELECT command_id, action, fence, incarnation, incident_id FROM commands "  # noqa: S608
            f"WHERE instance_id = '{instance_id}' AND status = 'in_flight'"
        )
        [(command, action, fence, incarnation, incident)] = self.rows(query)
        common = {"command_id": command, "incarnation": incarnation, "incident_id": incident}
        took_s = 0.0
        for step, duration_s in steps:
            self.later(duration_s)
            took_s += duration_s
            await self.write(StepFinished, instance_id, **common, step=step, duration_s=duration_s)
        self.later(0.05)
        report = CommandReport.model_validate(
            self.fields(instance_id)
            | common
            | {"action": action, "fence": fence, "outcome": "succeeded", "life_id": life}
            | {"duration_s": round(took_s + 0.04, 2)}
        )
        await self.store.apply_event("reports", report)

    async def evening(self) -> None:
        """Bring three instances up, and let them answer."""
        self.at("02:40:00")
        await self.store.register_policy()
        for instance_id in ("engine-0", "engine-1", "engine-2"):
            await self.observe(instance_id, "life-1")
            self.later(1.5)
            await self.probe(instance_id)
            await self.obey(instance_id, ("put_back", 0.01), life=None)
        self.at("02:51:00")
        for instance_id, unguarded in (("engine-0", 0), ("engine-1", 0), ("engine-2", 12)):
            await self.traffic(instance_id, requests=420, tokens=81_000, unguarded=unguarded)

    async def traffic(self, instance_id: str, **counts: int) -> None:
        """Have an agent tell of ten seconds of traffic."""
        window = {
            "agent_id": "agent-0",
            "incarnation": 1,
            "window_start": self.now - timedelta(seconds=10),
            "window_end": self.now,
        }
        await self.write(TelemetryWindow, instance_id, **window, **counts)

    async def garbage(self) -> None:
        """Let engine-0 emit garbage; it is drained, started again, proven clean and put back."""
        self.at("02:52:10.400")
        for reason, score, threshold in GARBAGE:
            await self.judge(
                "engine-0",
                "L1",
                reason=reason,
                score=score,
                threshold=threshold,
                attribution="instance",
                span={"char_start": 212, "char_end": 268},
            )
            self.later(1.7)
        drained = (("taken_out", 0.01), ("confirmed", 0.12), ("stopped", 2.1))
        await self.obey("engine-0", *drained, life=None)
        rejected = {"agent_id": "agent-0", "request_id": "r-draining-1", "cause": "draining"}
        await self.write(RequestRejected, "engine-0", **rejected, rerouted_to="engine-1")
        self.later(0.1)
        await self.obey("engine-0", ("started", 0.05), ("ready", 8.2), life="life-2")
        self.later(0.2)
        await self.observe("engine-0", "life-2")
        self.later(1.4)
        await self.probe("engine-0")
        await self.obey("engine-0", ("put_back", 0.01), life=None)

    async def people(self) -> None:
        """Let alice take engine-1 out, and a stranger try to forge commands."""
        self.at("02:55:30")
        wanted = (
            ("quarantine", "engine-1", "driver update", False),
            ("restart", "engine-0", "", True),
            ("release", "engine-2", "it looks slow", False),
        )
        for action, instance_id, reason, dry_run in wanted:
            facts = self.fields(instance_id) | {"action": action, "requested_by": "alice@desk"}
            if dry_run:
                trial = TrialRequest.model_validate(facts)
                await self.store.apply_trial("requests", trial, "alice")
            else:
                asked = ActionRequest.model_validate(facts | {"reason": reason})
                await self.store.apply_request("requests", asked, "alice")
            self.later(4)
        await self.obey("engine-1", ("taken_out", 0.01), life="life-1")
        for reason in ("unsigned", "unknown_key: 'fec8eb52a189539c'"):
            refused = CommandReport.model_validate(
                self.fields("engine-2")
                | {"command_id": "3b21cd36-forged", "action": "restart", "incarnation": 1}
                | {"fence": 1000, "outcome": "refused", "reason": reason, "ends_command": False}
            )
            await self.store.apply_event("reports", refused)

    async def proof(self) -> None:
        """Let there be proof against engine-2, and everything else go on."""
        self.at("02:57:02.250")
        found = {"reason": "nan_logits", "hard": True, "score": 1.0, "threshold": 0.0}
        await self.judge("engine-2", "L3", **found, attribution="instance")
        self.at("03:04:51")
        await self.traffic("engine-0", requests=610, tokens=118_000, unguarded=0)
        await self.traffic("engine-2", requests=180, tokens=35_000, server_errors=3)
        self.at("03:04:57")
        for instance_id, life in (("engine-0", "life-2"), ("engine-1", "life-1")):
            await self.observe(instance_id, life)
        self.at("03:04:58")
        await self.observe("engine-2", "life-1")
