"""`./mesh up` and `./mesh down` as people use them, down to kill -9 of everything that watches."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from gatemesh_common.messages import RestartInstance
from gatemesh_common.publisher import Publisher
from gatemesh_mesh.foreground import stop_everything
from gatemesh_mesh.plan import SERVICES
from gatemesh_mesh.postgres import plain_url
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import Supervision
from gatemesh_mesh.waiting import wait_until

pytestmark = pytest.mark.integration
START_DEADLINE_S = 150


@dataclass
class CommandLine:
    """`./mesh` on one state folder, on the test session's broker and database."""

    folder: StateFolder
    environment: dict[str, str]
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def command(self, *arguments: str) -> list[str]:
        """Return the command."""
        return [sys.executable, "-m", "gatemesh_mesh", *arguments]

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def up(self, output: Path) -> "subprocess.Popen[bytes]":
        """Start the stack and wait until it serves."""
        with output.open("wb") as file:
            process = subprocess.Popen(
                self.command("up", "--engines", "1"),
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.started.append(process)

        def settled() -> bool:
            return "Ctrl-C" in output.read_text() or process.poll() is not None

        assert wait_until(settled, START_DEADLINE_S)
        assert process.poll() is None, output.read_text()
        return process


@pytest.fixture
def mesh(tmp_path: Path, vhost_url: str, fresh_database: str) -> Iterator[CommandLine]:
    """Return a command line; whatever it leaves is ended."""
    folder = StateFolder(tmp_path / "state")
    environment = os.environ | {
        "GATEMESH_STATE": str(folder.root),
        "GATEMESH_AMQP_URL": vhost_url,
        "GATEMESH_DATABASE_URL": fresh_database,
    }
    mesh = CommandLine(folder, environment)
    yield mesh
    stop_everything(folder, SilentProgress())
    for process in mesh.started:
        process.wait(timeout=60)


def test_it_serves_and_ctrl_c_ends_all_of_it(
    mesh: CommandLine, tmp_path: Path, fresh_database: str
) -> None:
    """A person sees addresses that work, and nothing is left after Ctrl-C."""
    output = tmp_path / "up.log"
    process = mesh.up(output)
    status = mesh.call("status")
    assert status.returncode == 0
    assert "health_manager" in status.stdout
    [agent] = re.findall(r"AGENT=(http://\S+)", output.read_text())
    with urllib.request.urlopen(f"{agent}/v1/models", timeout=30) as answer:  # noqa: S310
        assert answer.status == 200
    [metrics] = re.findall(r"agent's metrics +(http://\S+)", output.read_text())
    assert f"agent's metrics: {metrics}" in status.stdout
    with urllib.request.urlopen(metrics, timeout=30) as answer:  # noqa: S310
        assert b"gatemesh_agent_requests_total" in answer.read()
    facts = mesh.folder.read_run()
    assert facts["starting"] is False
    assert set(facts["admin_urls"]) == set(SERVICES)
    with psycopg.connect(plain_url(fresh_database)) as connection:
        connection.execute("SELECT * FROM instance_health_v1")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=100) == 0
    assert Supervision(mesh.folder).survivors() == []
    assert mesh.call("status").returncode == 3


def test_starting_it_on_purpose_uses_up_no_restart_budget(
    mesh: CommandLine, tmp_path: Path
) -> None:
    """Whoever starts and stops all day is told of an engine only once the new life is proven."""
    del mesh.environment["GATEMESH_DATABASE_URL"]  # of others' databases nothing is forgotten
    process = mesh.up(tmp_path / "first.log")
    with database_of(tmp_path / "first.log") as connection:
        connection.execute("UPDATE instances SET restarts = array_fill(now(), ARRAY[3])")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=100) == 0
    mesh.up(tmp_path / "second.log")
    with database_of(tmp_path / "second.log") as connection:
        row = connection.execute("SELECT state, incarnation FROM instances").fetchone()
    assert row == ("healthy", 2)


def test_a_forged_command_is_refused_and_seen(
    mesh: CommandLine, tmp_path: Path, vhost_url: str, fresh_database: str
) -> None:
    """The stack signs its commands: whoever may publish at the broker still orders nothing."""
    mesh.up(tmp_path / "up.log")
    with psycopg.connect(plain_url(fresh_database), autocommit=True) as connection:

        def value(query: LiteralString) -> object:
            row = connection.execute(query).fetchone()
            return row[0] if row else None

        readmitted = "SELECT status FROM commands_v1 WHERE action = 'readmit'"
        assert wait_until(lambda: value(readmitted) == "succeeded", 30)
        asyncio.run(forge_restart(vhost_url))
        reasons = "SELECT string_agg(reason, ' ') FROM refused_commands_v1"
        assert wait_until(lambda: value(reasons) == "unsigned", 30)
        assert value("SELECT state FROM instances WHERE incarnation = 1") == "healthy"


async def forge_restart(amqp_url: str) -> None:
    """Order what a stranger would."""
    now = datetime.now(UTC)
    forged = RestartInstance(
        timestamp=now,
        instance_id="engine-0",
        incarnation=1,
        fence=1000,
        expires_at=now + timedelta(hours=1),
    )
    async with Publisher(amqp_url, "stranger") as publisher:
        await publisher.publish(forged)


def database_of(output: Path) -> "psycopg.Connection[tuple[object, ...]]":
    """Connect to the database whose address `up` printed."""
    [url] = re.findall(r'psql "([^"]+)"', output.read_text())
    return psycopg.connect(url)


def test_down_after_everything_that_watches_was_killed(mesh: CommandLine, tmp_path: Path) -> None:
    """Orphans of a killed command line and a killed supervisord are found and ended."""
    process = mesh.up(tmp_path / "up.log")
    pid = int((mesh.folder.supervisor / "supervisord.pid").read_text())
    process.kill()
    os.kill(pid, signal.SIGKILL)
    process.wait()
    assert Supervision(mesh.folder).survivors()
    down = mesh.call("down")
    assert down.returncode == 0, down.stderr
    assert "Nothing is left running" in down.stdout
    assert Supervision(mesh.folder).survivors() == []
    assert "Nothing was running" in mesh.call("down").stdout
