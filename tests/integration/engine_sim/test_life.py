"""Lives of a simulated engine as a process of its own: signals, drains, deaths, drills."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import test_utils

DEADLINE_S = 20.0
BODY = {"messages": [{"role": "user", "content": "Tell me about bread."}], "max_tokens": 40}
LONG = BODY | {"stream": True}


async def until(holds: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Return once another process shows what is waited for; fail past the deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not await holds():  # noqa: ASYNC110 - another process, seen from outside only
            await asyncio.sleep(0.01)


class Sim:
    """One process, leader of its own group, as supervisors start it."""

    def __init__(
        self, process: asyncio.subprocess.Process, log: Path, session: aiohttp.ClientSession
    ) -> None:
        self.process = process
        self.log = log
        self.session = session
        self.url = ""

    async def ready(self) -> None:
        """Wait for the line that names the port."""

        async def is_ready() -> bool:
            found = re.search(r"engine_ready (http://\S+)", self.log.read_text())
            self.url = found[1] if found else ""
            return bool(found)

        await until(is_ready)

    async def chat(self, body: dict[str, Any] = BODY, fault: str = "") -> tuple[int, str]:
        """Status and body of one chat request."""
        headers = {"X-Sim-Fault": fault} if fault else {}
        path = self.url + "/v1/chat/completions"
        async with self.session.post(path, json=body, headers=headers) as response:
            return response.status, (await response.read()).decode()

    async def streaming(self, fault: str = "") -> asyncio.Task[tuple[int, str]]:
        """A stream under way."""
        return await self.running(LONG, fault)

    async def running(self, body: dict[str, Any], fault: str) -> asyncio.Task[tuple[int, str]]:
        """A request under way; returns once the engine runs it."""
        task = asyncio.create_task(self.chat(body, fault))

        async def runs() -> bool:
            return 'num_requests_running{engine="0",model_name="sim"} 1.0' in await self.page()

        await until(runs)
        return task

    async def page(self) -> str:
        """The metrics page."""
        async with self.session.get(self.url + "/metrics") as response:
            return await response.text()

    async def health(self) -> int:
        """Its status."""
        async with self.session.get(self.url + "/health") as response:
            return response.status

    async def ended(self, within_s: float = DEADLINE_S) -> int:
        """The exit code."""
        return await asyncio.wait_for(self.process.wait(), within_s)

    def children(self) -> list[int]:
        """Processes of its group but itself."""
        return [pid for pid in group_members(self.process.pid) if pid != self.process.pid]


def group_members(group: int) -> list[int]:
    """Living processes of a group."""
    everyone = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in everyone if lives_in(pid, group)]


def lives_in(pid: int, group: int) -> bool:
    """True for a member of the group that is no zombie."""
    try:
        state, _, pgid = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:3]
    except OSError:
        return False
    return int(pgid) == group and state != "Z"


async def gone(group: int) -> None:
    """Return when a group has no member left."""

    async def is_gone() -> bool:
        return not group_members(group)

    await until(is_gone)


Start = Callable[..., Coroutine[Any, Any, Sim]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts engines on free ports; whatever is left of their groups is killed at the end."""
    groups: list[asyncio.subprocess.Process] = []
    session = aiohttp.ClientSession()

    async def started(*arguments: str, wait: bool = True, **environ: str) -> Sim:
        log = tmp_path / f"engine-{len(groups)}.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gatemesh_engine_sim", "--port", "0", *arguments),
                stdout=output,
                stderr=output,
                env=os.environ | environ,
                start_new_session=True,
            )
        groups.append(process)
        sim = Sim(process, log, session)
        if wait:
            await sim.ready()
        return sim

    yield started
    await session.close()
    for process in groups:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def test_sigterm_aborts_at_once(start: Start) -> None:
    """The default: an error event and the end mark, exit code 0, well within a second."""
    sim = await start("--tokens-per-s", "5")
    stream = await sim.streaming()
    sim.process.terminate()
    status, text = await asyncio.wait_for(stream, 2)
    assert status == 200
    *_, error, end, _ = text.split("\n\n")
    assert json.loads(error[6:])["error"]["code"] == 500
    assert end == "data: [DONE]"
    assert await sim.ended(2) == 0


async def test_sigterm_answers_whole_requests_with_500(start: Start) -> None:
    """The same for those that are not streamed."""
    sim = await start()
    stalled = await sim.running(BODY, "hang")
    sim.process.terminate()
    status, text = await asyncio.wait_for(stalled, 1)
    assert (status, json.loads(text)["error"]["type"]) == (500, "InternalServerError")
    assert await sim.ended() == 0


async def test_drain_lets_streams_end(start: Start) -> None:
    """New requests are refused, health stays 200, the running answer is whole, exit code 0."""
    sim = await start("--tokens-per-s", "20", "--shutdown-timeout", "20")
    stream = await sim.streaming()
    sim.process.terminate()
    short = BODY | {"max_tokens": 1}
    status, text = await sim.chat(short)
    while status == 200:
        status, text = await sim.chat(short)
    assert (status, "cannot schedule new futures" in text) == (500, True)
    assert await sim.health() == 200
    status, text = await stream
    assert "error" not in text
    assert text.endswith("data: [DONE]\n\n")
    assert '"finish_reason":"length"' in text
    assert await sim.ended() == 0


async def test_drain_has_an_end(start: Start) -> None:
    """What runs longer than the grace gets the error."""
    sim = await start("--shutdown-timeout", "0.3")
    stream = await sim.streaming("hang;after_tokens=3")
    sim.process.terminate()
    status, text = await stream
    assert (status, '"code": 500' in text) == (200, True)
    assert await sim.ended() == 0


async def test_ignored_sigterm_needs_sigkill(start: Start) -> None:
    """For the executor's escalation."""
    sim = await start("--ignore-sigterm")
    sim.process.terminate()
    assert (await sim.chat())[0] == 200
    sim.process.kill()
    assert await sim.ended() == -signal.SIGKILL


async def test_worker_outlives_a_killed_parent(start: Start) -> None:
    """Only killing the group ends it, as with vLLM's own processes."""
    sim = await start("--spawn-worker")
    [worker] = sim.children()
    sim.process.kill()
    await sim.ended()
    assert group_members(sim.process.pid) == [worker]
    os.killpg(sim.process.pid, signal.SIGKILL)
    await gone(sim.process.pid)


async def test_worker_ends_with_an_orderly_parent(start: Start) -> None:
    """Nothing is left."""
    sim = await start("--spawn-worker")
    sim.process.terminate()
    assert await sim.ended() == 0
    await gone(sim.process.pid)


async def test_dead_worker_ends_the_server_with_0(start: Start) -> None:
    """The trap: restart policies that look at the exit code never fire."""
    sim = await start("--spawn-worker")
    stream = await sim.streaming("hang;after_tokens=1")
    os.kill(sim.children()[0], signal.SIGKILL)
    _, text = await stream
    assert "EngineCore encountered an issue" in text
    assert await sim.ended() == 0


async def test_fault_exit_ends_with_0(start: Start) -> None:
    """The engine dies under its requests."""
    sim = await start()
    status, text = await sim.chat(fault="exit")
    assert (status, "EngineCore" in text) == (500, True)
    assert await sim.ended() == 0


async def test_hang_keeps_health(start: Start) -> None:
    """The stream stalls, /health and other requests do not."""
    sim = await start()
    stream = await sim.streaming("hang;after_tokens=2")
    assert await sim.health() == 200
    assert (await sim.chat())[0] == 200
    assert not stream.done()
    stream.cancel()
    with suppress(asyncio.CancelledError):
        await stream


async def test_disconnect_cuts_the_stream(start: Start) -> None:
    """Without an end mark."""
    sim = await start()
    with pytest.raises(aiohttp.ClientError):
        await sim.chat(LONG, "disconnect;after_tokens=3")
    assert (await sim.chat())[0] == 200


async def test_connections_are_refused_until_ready(start: Start) -> None:
    """A slow start."""
    port = test_utils.unused_port()
    sim = await start("--port", str(port), "--start-delay-s", "0.3", wait=False)
    sim.url = f"http://127.0.0.1:{port}"
    with pytest.raises(aiohttp.ClientConnectorError):
        await sim.health()
    await sim.ready()
    assert await sim.health() == 200


async def test_drill_file_spoils_one_life_only(start: Start, tmp_path: Path) -> None:
    """The group named in it; the next life is clean though the file still lies there."""
    drill = tmp_path / "drill.json"
    first = await start(GATEMESH_CHAOS_FILE=str(drill))
    _, clean = await first.chat()
    drill.write_text(json.dumps({"fault": "nan", "pgid": first.process.pid, "after_tokens": 2}))
    _, spoilt = await first.chat()
    assert len(json.loads(spoilt)["choices"][0]["message"]["content"]) < 30
    second = await start(GATEMESH_CHAOS_FILE=str(drill))
    _, healed = await second.chat()
    texts = [json.loads(body)["choices"] for body in (clean, healed)]
    assert texts[0] == texts[1]


async def test_port_in_use_is_named(start: Start) -> None:
    """Exit code 1."""
    sim = await start()
    port = sim.url.rsplit(":", 1)[1]
    second = await start("--port", port, wait=False)
    assert await second.ended() == 1
    assert f"--port {port} on 127.0.0.1: " in second.log.read_text()
