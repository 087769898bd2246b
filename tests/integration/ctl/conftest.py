"""A migrated database, a running manager, and an executor that obeys at once."""

import asyncio
import contextlib
import io
import json
import os
import subprocess
import sys
import unittest.mock
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aio_pika.abc import AbstractIncomingMessage

from gatemesh_common.broker import COMMANDS, declare_topology
from gatemesh_common.messages import (
    COMMAND,
    CommandReport,
    InstanceObserved,
    ReportOutcome,
    StepFinished,
    derived_id,
)
from gatemesh_common.publisher import Publisher
from gatemesh_ctl import cli

POOL = "chat"


@dataclass(frozen=True)
class Answer:
    """What a call of the command line gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return what was printed, read as JSON."""
        return json.loads(self.out)


class CommandLine:
    """`gatemesh-ctl` with these addresses."""

    def __init__(self, **environment: str) -> None:
        self._own = environment
        self._environment = {**os.environ, **environment}

    async def call(self, *arguments: str) -> Answer:
        """Run one command to its end, in this process: a start takes longer than most commands."""
        return await asyncio.to_thread(self._run, arguments)

    def _run(self, arguments: tuple[str, ...]) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        code: int | str | None = 0
        with (
            unittest.mock.patch.dict(os.environ, self._own),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                cli.main(arguments)
            except SystemExit as ended:
                code = ended.code
        return Answer(int(code or 0), out.getvalue(), err.getvalue())

    async def start(self, *arguments: str) -> Answer:
        """Run one command to its end, in a process of its own."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", "from gatemesh_ctl.cli import main; main()"),
            *arguments,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return Answer(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def ctl(vhost_url: str, fresh_database: str, tmp_path: Path) -> CommandLine:
    """Give a command line for this test's broker and database, far from any local stack."""
    return CommandLine(
        GATEMESH_AMQP_URL=vhost_url,
        GATEMESH_DATABASE_URL=fresh_database,
        GATEMESH_STATE=str(tmp_path),
    )


@pytest.fixture
def policy_file() -> Path | None:
    """Return the rules of the manager; none are the defaults. Test modules have their own."""
    return None


@pytest.fixture
def manager(vhost_url: str, fresh_database: str, policy_file: Path | None) -> Iterator[None]:
    """Run a manager on an empty, migrated database."""
    environment = {
        **os.environ,
        "GATEMESH_AMQP_URL": vhost_url,
        "GATEMESH_DATABASE_URL": fresh_database,
        "GATEMESH_HEALTH_MANAGER_ADMIN_PORT": "0",
        "GATEMESH_LOG_LEVEL": "WARNING",
    }
    if policy_file is not None:
        environment["GATEMESH_HEALTH_MANAGER_POLICY_FILE"] = str(policy_file)
    service = [sys.executable, "-m", "gatemesh_health_manager"]
    subprocess.run([*service, "migrate"], env=environment, check=True, timeout=60)
    with subprocess.Popen(service, env=environment) as process:
        yield
        process.terminate()


class ObedientExecutor:
    """Tells of two instances and answers every command with success."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    async def begin(self) -> None:
        """Tell of the instances and read commands."""
        channel = await self.publisher.channel()
        await declare_topology(channel)
        queue = await channel.declare_queue(COMMANDS.name, passive=True)
        await queue.consume(self._obey, no_ack=True)
        for name in ("engine-0", "engine-1"):
            await self.observe(name, running=True)

    async def observe(self, instance_id: str, *, running: bool) -> None:
        """Tell of one instance."""
        await self.publisher.publish(
            InstanceObserved(
                timestamp=datetime.now(UTC),
                instance_id=instance_id,
                pool=POOL,
                running=running,
                life_id=f"{instance_id}-life" if running else None,
                base_url="http://127.0.0.1:1",
            )
        )

    async def _obey(self, message: AbstractIncomingMessage) -> None:
        command = COMMAND.validate_json(message.body)
        common = {
            "timestamp": datetime.now(UTC),
            "instance_id": command.instance_id,
            "pool": command.pool,
            "command_id": command.message_id,
            "incident_id": command.incident_id,
            "incarnation": command.incarnation,
        }
        step = {**common, "step": "stopped", "message_id": derived_id(command.message_id, "s")}
        await self.publisher.publish(StepFinished.model_validate(step))
        report = {
            **common,
            "action": command.action,
            "fence": command.fence,
            "outcome": ReportOutcome.SUCCEEDED,
        }
        await self.publisher.publish(CommandReport.model_validate(report))
        await self.observe(command.instance_id, running=False)


@pytest.fixture
async def executor(manager: None, vhost_url: str) -> AsyncIterator[ObedientExecutor]:
    """Give an executor at work."""
    async with Publisher(vhost_url, "test-executor") as publisher:
        executor = ObedientExecutor(publisher)
        await executor.begin()
        yield executor
