"""Steady client traffic through the agent, and what the clients saw."""

import asyncio
import time
from dataclasses import dataclass, field
from itertools import count

import aiohttp

from gatemesh_common.clock import utc_now

CLIENTS = 3
PAUSE_S = 0.15
ANSWER_DEADLINE_S = 60.0
MARKED_EVERY = 8
"""Every so many requests one is answered with garbage on purpose: the agent must tell of it."""
MARKED_PROMPT = "always the same"


@dataclass
class Traffic:
    """Clients that go on asking, whatever happens."""

    agent_url: str
    word: str
    answered: int = 0
    errors: list[str] = field(default_factory=list)
    """What clients saw that was not a whole answer, with the moment."""
    marked: set[str] = field(default_factory=set)
    """Ids of the garbled answers that reached a client whole."""
    slowest_s: float = 0.0
    _numbers: "count[int]" = field(default_factory=count)

    async def run(self, stopped: asyncio.Event) -> None:
        """Ask until stopped."""
        limit = aiohttp.ClientTimeout(total=ANSWER_DEADLINE_S)
        async with aiohttp.ClientSession(timeout=limit) as session:
            await asyncio.gather(*(self._client(session, stopped) for _ in range(CLIENTS)))

    async def _client(self, session: aiohttp.ClientSession, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            await self.ask(session, next(self._numbers))
            await asyncio.sleep(PAUSE_S)

    async def ask(self, session: aiohttp.ClientSession, number: int) -> None:
        """Send one request and note what came of it."""
        began = time.monotonic()
        try:
            fault = await self._fault_of(session, number)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            fault = type(error).__name__
        if fault:
            self.errors.append(f"{utc_now():%H:%M:%S} {fault}")
            return
        self.answered += 1
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if number % MARKED_EVERY == 0:
            self.marked.add(self._request_id(number))

    async def _fault_of(self, session: aiohttp.ClientSession, number: int) -> str:
        marked, streamed = number % MARKED_EVERY == 0, number % 2 == 1
        headers = {"X-Request-Id": self._request_id(number)}
        if marked:
            headers["X-Sim-Fault"] = "replacement"
        prompt = MARKED_PROMPT if marked else f"{self.word}: question number {number}"
        body = {
            "model": "sim",
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": 24,
            "temperature": 0,
            "stream": streamed,
        }
        url = f"{self.agent_url}/v1/chat/completions"
        async with session.post(url, json=body, headers=headers) as response:
            got = await response.read()
        if response.status != 200:
            return f"status {response.status}"
        return "stream without its end" if streamed and b"[DONE]" not in got else ""

    def _request_id(self, number: int) -> str:
        return f"{self.word}-{number}"
