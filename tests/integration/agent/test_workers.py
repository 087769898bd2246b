"""An agent of several processes: one port, one page of metrics, and no worker missed for long."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.integration.agent.parts import chat, until
from tests.integration.agent.test_program import Program, listed, running

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
CLIENTS = 24


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def workers_of(program: Program) -> list[int]:
    """Return the processes of an agent's workers."""
    pid = program.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def two_workers(tmp_path: Path, engines: dict[str, str]) -> Iterator[tuple[Program, int]]:
    """Run an agent of two workers while the block lasts; give it and its admin port."""
    admin = free_port()
    with running(
        tmp_path,
        GATEMESH_AGENT_WORKERS="2",
        GATEMESH_AGENT_ADMIN_PORT=str(admin),
        GATEMESH_AGENT_INSTANCES=listed(engines),
    ) as program:
        yield program, admin


async def ask_by_new_connections(program: Program, count: int) -> list[int]:
    """Send requests, each by a connection of its own; return their statuses."""

    async def one() -> int:
        connector = aiohttp.TCPConnector(force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(program.url + CHAT, json=chat(stream=True)) as response,
        ):
            await response.read()
            return response.status

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def metric(port: int, name: str) -> float:
    """Return the sum of a metric's series; 0 when it is not shown."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as response,
    ):
        text = await response.text()
    lines = [line for line in text.splitlines() if line.startswith(name)]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


async def status(port: int) -> int:
    """Return the status of the readiness page."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/readyz") as response,
    ):
        return response.status


async def test_all_workers_serve_and_one_page_counts_them(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """The kernel parts new connections; both have files of their own."""
    with two_workers(tmp_path, engines) as (program, admin):
        assert len(workers_of(program)) == 2
        assert await ask_by_new_connections(program, CLIENTS) == [200] * CLIENTS
        assert await metric(admin, "gatemesh_agent_requests_total") == CLIENTS
        assert await status(admin) == 200
        program.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(program.process.wait, 60) == 0
    names = {each.name for each in (tmp_path / "spool").glob("spool-*.sqlite3")}
    assert names == {"spool-agent-0-w0.sqlite3", "spool-agent-0-w1.sqlite3"}


async def test_a_killed_worker_comes_back_and_its_clients_wait_for_it(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """Its socket stays open meanwhile; what it had counted is not lost."""
    with two_workers(tmp_path, engines) as (program, admin):
        await ask_by_new_connections(program, CLIENTS)
        assert await metric(admin, "gatemesh_agent_requests_total") == CLIENTS
        first = workers_of(program)
        os.kill(first[0], signal.SIGKILL)
        assert await ask_by_new_connections(program, CLIENTS) == [200] * CLIENTS
        await until(lambda: len(workers_of(program)) == 2)
        assert first[0] not in workers_of(program)
        assert await metric(admin, "gatemesh_agent_requests_total") == 2 * CLIENTS


async def test_workers_do_not_outlive_their_supervisor(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """Nobody would watch them."""
    with two_workers(tmp_path, engines) as (program, _):
        pids = workers_of(program)
        program.process.kill()
        await asyncio.to_thread(program.process.wait, 60)
        await until(lambda: not any(is_running(pid) for pid in pids))


def is_running(pid: int) -> bool:
    """Return True for a process that is neither gone nor waiting to be buried."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


async def test_settings_that_no_worker_can_start_with_end_the_agent(tmp_path: Path) -> None:
    """With the code that says so."""
    with (
        pytest.raises(AssertionError, match="ended before"),
        running(
            tmp_path,
            GATEMESH_AGENT_WORKERS="2",
            GATEMESH_AGENT_PROBE_SUITE=str(tmp_path / "missing.toml"),
        ),
    ):
        pass
