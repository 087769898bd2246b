"""What clients, and the shadow beside them, may do to everybody else."""

import asyncio
import os
import signal
from typing import Any

import aiohttp
from tests.faults.acting import chat, kill
from tests.faults.scenario import Play

AGENT, SHADOW = "agent", "shadow"
PROMPT = "Tell me a long story."
LONG_TOKENS = 400
FLOOD = 120
CROWD = 12
HELD_S = 5.0
STOPPED_S = 15.0
SLOW_STEPS = 20
SLOW_STEP_S = 0.5


async def kill_agent(it: Play) -> None:
    """The agent dies while it streams."""
    before = len(it.traffic.errors)
    kill(it, AGENT)
    await it.reach(lambda: len(it.traffic.errors) > before, "clients that are cut off")
    await it.is_cured()


async def flood(it: Play) -> None:
    """One tenant repeats a prompt that makes engines babble, and sends what is refused."""
    headers = {"X-Sim-Fault": "bang", "Authorization": "Bearer one-tenant"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for _ in range(FLOOD // 8):
            wrong = [post(it, session, max_tokens=-1) for _ in range(4)]
            right = [post(it, session, max_tokens=16) for _ in range(4)]
            assert await asyncio.gather(*wrong, *right) == [400] * 4 + [200] * 4


async def post(it: Play, session: aiohttp.ClientSession, **fields: Any) -> int:
    """Ask for the same thing as always; return the status."""
    async with session.post(url_of(it), json=chat(PROMPT, **fields)) as response:
        await response.read()
        return response.status


async def read_slowly(it: Play) -> None:
    """A crowd of clients asks for streams and does not read them."""
    async with aiohttp.ClientSession(read_bufsize=1024) as session:
        asked = [
            session.post(url_of(it), json=chat(PROMPT, stream=True, max_tokens=LONG_TOKENS))
            for _ in range(CROWD)
        ]
        streams = await asyncio.gather(*asked)
        await it.flows()
        await asyncio.sleep(HELD_S)
        whole = [await stream.read() for stream in streams]
    assert all(b"[DONE]" in one for one in whole)


async def disconnect(it: Play) -> None:
    """A crowd of clients leaves in the middle of its streams."""
    async with aiohttp.ClientSession() as session:
        for _ in range(CROWD):
            stream = await session.post(
                url_of(it), json=chat(PROMPT, stream=True, max_tokens=LONG_TOKENS)
            )
            await stream.content.readany()
            stream.close()
    await it.flows()


async def stop_shadow(it: Play) -> None:
    """The shadow hangs, then it dies."""
    kill(it, SHADOW, signal.SIGSTOP)
    await asyncio.sleep(STOPPED_S)
    await it.flows()
    kill(it, SHADOW, signal.SIGCONT)
    await it.flows()
    kill(it, SHADOW)
    await it.is_cured()


async def slow_shadow(it: Play) -> None:
    """The shadow, and the models in it, get a tenth of the time that they need."""
    pid = it.site.fleet.pid_of(SHADOW)
    try:
        for _ in range(SLOW_STEPS):
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(SLOW_STEP_S * 0.9)
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(SLOW_STEP_S * 0.1)
    finally:
        os.kill(pid, signal.SIGCONT)
    await it.is_cured()


def url_of(it: Play) -> str:
    """Return where clients ask."""
    return f"{it.site.plan.agent_url}/v1/chat/completions"
