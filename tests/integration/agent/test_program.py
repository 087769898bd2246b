"""The agent as a process: starts, stops in order, survives a kill with all it had to tell."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from tests.integration.agent.parts import NO_BROKER, chat, spooled, until
from tests.integration.agent.test_sending import declare, received
from tests.integration.gate import Gate

from gatemesh_common.messages import Verdict

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@dataclass
class Program:
    """A running agent."""

    process: subprocess.Popen[str]
    url: str


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return the environment of an agent."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEMESH_")}
    own = {
        "GATEMESH_AMQP_URL": NO_BROKER,
        "GATEMESH_AGENT_PORT": "0",
        "GATEMESH_AGENT_ADMIN_PORT": "0",
        "GATEMESH_AGENT_SPOOL_DIR": str(folder / "spool"),
        "GATEMESH_AGENT_FINGERPRINT_KEY": "0123456789abcdef",
    }
    return kept | own | variables


@contextmanager
def running(folder: Path, **variables: str) -> Iterator[Program]:
    """Run an agent; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gatemesh_agent"],
        env=environment(folder, **variables),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "agent_ready":
                yield Program(process, event["address"])
                break
        else:
            raise AssertionError("the agent ended before it was ready")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def listed(engines: dict[str, str]) -> str:
    """Write instances as the setting wants them."""
    return ",".join(f"{name}={address}" for name, address in engines.items())


async def break_engine(engines: dict[str, str]) -> None:
    """Have the first engine stream NaN."""
    async with aiohttp.ClientSession() as session:
        await session.post(f"{engines['engine-0']}/sim/fault", json={"fault": "nan"})


async def ask(program: Program, count: int) -> None:
    """Send streamed chat requests."""
    async with aiohttp.ClientSession() as session:
        for _ in range(count):
            async with session.post(program.url + CHAT, json=chat(stream=True)) as response:
                await response.read()


async def test_a_killed_agent_loses_no_verdict(
    tmp_path: Path, engines: dict[str, str], vhost_url: str
) -> None:
    """Proven while the broker was away, told after the restart."""
    await declare(vhost_url)
    await break_engine(engines)
    only = {"engine-0": engines["engine-0"]}
    async with Gate(vhost_url) as gate:
        await gate.shut()
        with running(
            tmp_path, GATEMESH_AMQP_URL=gate.url, GATEMESH_AGENT_INSTANCES=listed(only)
        ) as program:
            await ask(program, 5)
            program.process.kill()
        held = spooled(tmp_path / "spool" / "spool-agent-0.sqlite3", Verdict)
        # Both gates see it: NaN, and an empty answer.
        assert len(held) == 10
        await gate.open()
        with running(tmp_path, GATEMESH_AMQP_URL=gate.url):
            found = await received(vhost_url, 10)
    assert set(found) == {each.message_id for each in held}


async def test_sigterm_lets_running_requests_end(tmp_path: Path, engines: dict[str, str]) -> None:
    """No new connections, no cut answers, exit code 0."""
    address = engines["engine-0"]
    async with aiohttp.ClientSession() as session:
        await session.post(f"{address}/sim/fault", json={"fault": "slow"})
        only = {"engine-0": address}
        with running(tmp_path, GATEMESH_AGENT_INSTANCES=listed(only)) as program:
            response = await session.post(program.url + CHAT, json=chat(stream=True, max_tokens=4))
            await response.content.readany()
            program.process.send_signal(signal.SIGTERM)
            body = await response.read()
            assert body.endswith(b"data: [DONE]\n\n")
            assert await asyncio.to_thread(program.process.wait, 30) == 0


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"GATEMESH_AGENT_PORT": "many"}, "GATEMESH_AGENT_PORT"),
        ({"GATEMESH_AGENT_MODE": "sidecar"}, "GATEMESH_AGENT_INSTANCES"),
        ({"GATEMESH_AGENT_PROBE_SUITE": "/nowhere.toml"}, "GATEMESH_AGENT_PROBE_SUITE"),
    ],
)
def test_wrong_settings_end_it_with_one_clean_message(
    tmp_path: Path, variables: dict[str, str], names: str
) -> None:
    """Exit code 2, no stack trace."""
    done = subprocess.run(
        [sys.executable, "-m", "gatemesh_agent"],
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert names in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """With the way out."""
    with running(tmp_path) as program:
        port = program.url.rsplit(":", 1)[1]
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "gatemesh_agent"],
            env=environment(tmp_path / "two", GATEMESH_AGENT_PORT=port),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 2
    assert "GATEMESH_AGENT_PORT" in done.stderr


async def test_traffic_flows_without_a_broker(tmp_path: Path, engines: dict[str, str]) -> None:
    """And what is to be told is kept."""
    with running(
        tmp_path,
        GATEMESH_AGENT_INSTANCES=listed(engines),
        GATEMESH_AGENT_TELEMETRY_EVERY_S="0.1",
    ) as program:
        await ask(program, 3)
        path = tmp_path / "spool" / "spool-agent-0.sqlite3"
        await until(lambda: path.exists() and path.stat().st_size > 0)
