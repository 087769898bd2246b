"""A hung engine says 200 on /health; the watchdog counts its tokens."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.agent.conftest import start_engine
from tests.integration.agent.parts import Setup, chat, serving, settings_for, until

from gatemesh_common.messages import Reason, Verdict

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
QUICK = {"stall_s": 1.0, "stall_first_s": 2.0, "stall_probe_s": 1.0}


@asynccontextmanager
async def watching(folder: Path, instances: dict[str, str], **more: Any) -> AsyncIterator[Setup]:
    """Run an agent whose watchdog is awake and impatient."""
    async with serving(settings_for(folder, instances, **QUICK, **more)) as setup:
        task = asyncio.create_task(setup.agent.guarding.stalls.run())
        try:
            yield setup
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def stalls(setup: Setup) -> list[Verdict]:
    """Return what the watchdog reported."""
    return [each for each in setup.spooled(Verdict) if each.reason is Reason.STALLED]


async def set_fault(address: str, fault: str, **more: Any) -> None:
    """Have a simulated engine go bad."""
    async with aiohttp.ClientSession() as session:
        await session.post(f"{address}/sim/fault", json={"fault": fault, **more})


async def fault_of(address: str) -> Any:
    """Return what strikes at a simulated engine; None once it has struck."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{address}/sim/fault") as response,
    ):
        return (await response.json())["fault"]


async def test_a_stopped_process_is_reported(tmp_path: Path) -> None:
    """SIGSTOP within a stream: hard, since our own request gets no token either."""
    process, address = start_engine("engine-stopped", "--tokens-per-s", "20")
    try:
        async with watching(tmp_path, {"e": address}) as setup:
            async with setup.session.post(
                setup.url + CHAT, json=chat(stream=True, max_tokens=200)
            ) as response:
                await response.content.readany()
                os.kill(process.pid, signal.SIGSTOP)
                begun_s = time.monotonic()
                await until(lambda: stalls(setup))
                took_s = time.monotonic() - begun_s
            [verdict] = stalls(setup)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert verdict.hard
    assert verdict.details["own_generation"] == "silent"
    assert took_s < 15


async def test_a_hang_behind_a_living_server_is_reported(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """Its counters stand still; a request that is not streamed shows it, too."""
    address = engines["engine-0"]
    await set_fault(address, "hang")
    async with watching(tmp_path, {"e": address}) as setup:
        task = asyncio.create_task(setup.post(CHAT, chat()))
        await until(lambda: stalls(setup))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        [verdict] = stalls(setup)
    assert verdict.hard
    assert verdict.details["counters"] in {"unchanged", "absent"}


async def test_one_stuck_request_accuses_nobody(tmp_path: Path, engines: dict[str, str]) -> None:
    """An engine that answers others, and us, makes progress."""
    address = engines["engine-0"]
    await set_fault(address, "hang", requests=1)
    async with watching(tmp_path, {"e": address}) as setup:
        task = asyncio.create_task(setup.post(CHAT, chat(stream=True)))
        async with asyncio.timeout(30):
            while await fault_of(address) is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        deadline_s = time.monotonic() + 6.0
        while time.monotonic() < deadline_s:
            await setup.post(CHAT, chat(stream=True))
        assert not task.done()
        assert stalls(setup) == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
