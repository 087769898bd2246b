"""The store over an empty database, driven by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.messages import (
    CommandReport,
    InstanceObserved,
    Verdict,
)
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.store import Store
from gatemesh_mesh.postgres import plain_url

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
