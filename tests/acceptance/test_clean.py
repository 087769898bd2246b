"""Clean traffic leads to nothing, and clients get what they would have got without the agent."""

import asyncio
import os
import re

import aiohttp
import pytest
from tests.acceptance.fleet import Fleet, now

from gatemesh_mesh.suite import FAULTS_VARIABLE

pytestmark = pytest.mark.acceptance

REQUESTS = 20_000 if os.environ.get(FAULTS_VARIABLE) else 5_000
"""The long form comes with `./mesh test --faults`."""
CLIENTS = 16
PROMPTS = [
    *(f"Explain the number {number} to a child." for number in range(60)),
    *(f"请解释数字{number}。" for number in range(20)),
    *(f"Write a short list about topic {number}." for number in range(20)),
]
SHAPES: list[dict[str, object]] = [
    {"temperature": 0, "max_tokens": 24},
    {"temperature": 0, "max_tokens": 24, "stream": True},
    {"temperature": 0.8, "seed": 1, "max_tokens": 24},
    {"temperature": 0, "max_tokens": 16, "stream": True, "stream_options": {"include_usage": True}},
    {"temperature": 0, "max_tokens": 8, "logprobs": True, "top_logprobs": 2},
]
VARYING = re.compile(rb'"id":"[^"]*"|"created":\d+')


def body_of(turn: int) -> dict[str, object]:
    """Return the request of one turn; bodies come back after all prompts in all shapes."""
    prompt = PROMPTS[turn % len(PROMPTS)]
    shape = SHAPES[(turn // len(PROMPTS)) % len(SHAPES)]
    return {"model": "sim", "messages": [{"role": "user", "content": prompt}], **shape}


async def answer(session: aiohttp.ClientSession, base_url: str, turn: int) -> bytes:
    """Return status and body of one request, without what differs each time."""
    url = f"{base_url}/v1/chat/completions"
    async with session.post(url, json=body_of(turn)) as response:
        body = await response.read()
    return b"%d %s" % (response.status, VARYING.sub(b"", body))


@pytest.mark.timeout(1800)
async def test_clean_traffic_changes_nothing(fleet: Fleet) -> None:
    """Many requests: no action, no failure, every body as the engine itself gives it."""
    since = now()
    direct: dict[int, bytes] = {}
    different: list[int] = []
    different_shapes = len(PROMPTS) * len(SHAPES)
    async with aiohttp.ClientSession() as session:
        for turn in range(different_shapes):
            direct[turn] = await answer(session, fleet.plan.engines[0].base_url, turn)

        async def client(first: int) -> None:
            for turn in range(first, REQUESTS, CLIENTS):
                got = await answer(session, fleet.plan.agent_url, turn)
                if got != direct[turn % different_shapes]:
                    different.append(turn)

        await asyncio.gather(*(client(first) for first in range(CLIENTS)))
    assert different == []
    assert all(one.startswith(b"200 ") for one in direct.values())
    await fleet.settled()
    assert fleet.commands(since) == []
    assert fleet.failures(since) == []
