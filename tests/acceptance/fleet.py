"""The whole stack with simulated engines, driven and read as an operator would."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp
import psycopg
from psycopg.rows import dict_row

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import Message
from gatemesh_common.publisher import Publisher
from gatemesh_mesh.plan import Engine, StackPlan, engine_program
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.postgres import plain_url
from gatemesh_mesh.stack import Stack
from gatemesh_mesh.state import StateFolder

DEADLINE_S = 60.0
LOOP_DEADLINE_S = 90.0
INTERVAL_S = 0.05


def quick_engines(folder: StateFolder, ports: Sequence[int]) -> list[Engine]:
    """Return simulated engines that answer at once, each with a worker as vLLM has."""
    return [quick_engine(folder, f"engine-{number}", port) for number, port in enumerate(ports)]


def quick_engine(folder: StateFolder, name: str, port: int) -> Engine:
    """Return one simulated engine that obeys its drill file."""
    drill_file = folder.root / "drills" / f"{name}.json"
    argv = (
        *(sys.executable, "-m", "gatemesh_engine_sim", "--name", name, "--port", str(port)),
        *("--model", "sim", "--shutdown-timeout", "50", "--chaos-file", str(drill_file)),
        "--spawn-worker",
    )
    return Engine(name, f"http://{LOOPBACK}:{port}", engine_program(folder, name, argv))


@dataclass
class Fleet:
    """One running stack."""

    stack: Stack
    plan: StackPlan
    _session: "psycopg.Connection[dict[str, Any]] | None" = field(default=None, repr=False)
    """Kept, since whoever waits asks many times; the test's threads take turns."""
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def rows(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return what a query over the views finds."""
        with self._turn:
            try:
                return self._find(query, parameters)
            except psycopg.OperationalError:
                # The server was away since the last one.
                self.close()
                return self._find(query, parameters)

    def close(self) -> None:
        """End the session, if there is one; the next question opens another."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _find(self, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        if self._session is None:
            url = plain_url(self.plan.addresses.database_url)
            self._session = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        return self._session.execute(query, parameters).fetchall()

    def count(self, query: str, **parameters: Any) -> int:
        """Return the number that a counting query gives."""
        [row] = self.rows(query, **parameters)
        return int(next(iter(row.values())))

    def state_of(self, instance: str) -> str:
        """Return the state of an instance."""
        query = "SELECT state FROM instance_health_v1 WHERE instance_id = %(instance)s"
        [row] = self.rows(query, instance=instance)
        return str(row["state"])

    def reached(self, instance: str, state: str, since: datetime) -> bool:
        """Tell whether an instance was in a state since a moment."""
        query = """SELECT count(*) FROM transitions_v1 WHERE instance_id = %(instance)s
            AND after_state = %(state)s AND at >= %(since)s"""
        return self.count(query, instance=instance, state=state, since=since) > 0

    def commands(self, since: datetime, instance: str | None = None) -> list[str]:
        """Return the commands since a moment, oldest first; putting back is none."""
        query = """SELECT action FROM commands_v1 WHERE issued_at >= %(since)s
            AND action <> 'readmit' AND coalesce(%(instance)s, instance_id) = instance_id
            ORDER BY issued_at"""
        return [str(row["action"]) for row in self.rows(query, since=since, instance=instance)]

    def failures(self, since: datetime) -> list[dict[str, Any]]:
        """Return what the gates found wrong since a moment, oldest first."""
        query = """SELECT instance_id, check_level, reason, attribution, details FROM verdicts_v1
            WHERE outcome = 'failed' AND received_at >= %(since)s ORDER BY received_at"""
        return self.rows(query, since=since)

    def is_settled(self) -> bool:
        """Tell whether every instance serves and no incident or command is open."""
        serving = "SELECT count(*) FROM instance_health_v1 WHERE in_rotation"
        incidents = "SELECT count(*) FROM incidents_v1 WHERE ended_at IS NULL"
        commands = "SELECT count(*) FROM commands_v1 WHERE ended_at IS NULL"
        return (
            self.count(serving) == len(self.plan.engines)
            and self.count(incidents) == 0
            and self.count(commands) == 0
        )

    async def settled(self, deadline_s: float = LOOP_DEADLINE_S) -> None:
        """Wait until the stack is at rest; fail with what keeps it from it."""
        try:
            await until(self.is_settled, "at rest", deadline_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; open: {self.unsettled()}") from error

    def unsettled(self) -> list[dict[str, Any]]:
        """Return what keeps the stack from rest, and how the instances came to where they are."""
        states = "SELECT instance_id, state, incarnation, in_rotation FROM instance_health_v1"
        incidents = "SELECT * FROM incidents_v1 WHERE ended_at IS NULL"
        commands = "SELECT action, instance_id, issued_at FROM commands_v1 WHERE ended_at IS NULL"
        last = """SELECT at, instance_id, before_state, trigger, after_state FROM transitions_v1
            ORDER BY at DESC LIMIT 12"""
        return [row for query in (states, incidents, commands, last) for row in self.rows(query)]

    async def repaired(self, instance: str, since: datetime) -> None:
        """Wait until an instance was restarted, is back, and the stack is at rest."""

        def is_back() -> bool:
            return self.reached(instance, "restarting", since) and self.is_settled()

        await until(is_back, f"{instance} repaired", LOOP_DEADLINE_S)

    def pid_of(self, program: str) -> int:
        """Return the process of a program; 0 while it has none."""
        return next(one.pid for one in self.stack.supervision.statuses() if one.name == program)

    def kill(self, program: str) -> None:
        """End a program of ours as a power cut would; supervisord starts it again."""
        pid = self.pid_of(program)
        if pid:
            os.kill(pid, signal.SIGKILL)

    async def publish(self, *messages: Message) -> None:
        """Publish by hand, as a person with the broker's address would."""
        async with Publisher(self.plan.addresses.amqp_url, "acceptance") as publisher:
            for message in messages:
                await publisher.publish(message)

    async def ask(
        self, prompt: str, *, headers: dict[str, str] | None = None, **fields: Any
    ) -> tuple[int, bytes, str]:
        """Send one chat request through the agent; return status, body and instance."""
        body = {"model": "sim", "messages": [{"role": "user", "content": prompt}], **fields}
        url = f"{self.plan.agent_url}/v1/chat/completions"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=body, headers=headers) as response,
        ):
            return (
                response.status,
                await response.read(),
                response.headers.get("X-Gatemesh-Instance", ""),
            )


async def until(reached: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait until something is so; fail with its name when it is not in time."""
    end = asyncio.get_running_loop().time() + deadline_s
    while not await asyncio.to_thread(reached):
        assert asyncio.get_running_loop().time() < end, f"not within {deadline_s:.0f} s: {what}"
        await asyncio.sleep(INTERVAL_S)


async def keep_asking(
    ask: Callable[[int], Awaitable[object]], stopped: asyncio.Event, pause_s: float = 0.1
) -> int:
    """Go on asking, with a rising number, until told to stop; return how often."""
    turn = 0
    while not stopped.is_set():
        await ask(turn)
        turn += 1
        await asyncio.sleep(pause_s)
    return turn


def now() -> datetime:
    """Return the present moment."""
    return utc_now()
