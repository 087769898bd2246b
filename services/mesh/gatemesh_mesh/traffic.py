"""Clients of the demo: varied requests through the agent, and what each of them got."""

import asyncio
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiohttp

from gatemesh_common.clock import Clock

REQUEST_TIMEOUT_S = 120.0
OK = 200
SERVER_ERROR = 500


@dataclass
class Exchange:
    """One request of a client and what came back; the text itself is kept for counting only."""

    request_id: str
    prompt: str
    streamed: bool
    started_at: datetime
    finished_at: datetime | None = None
    status: int = 0
    instance: str = ""
    error: str = ""
    text: str = ""

    @property
    def failed(self) -> bool:
        """True when the client saw an error."""
        return bool(self.error) or self.status >= SERVER_ERROR


def request_body(model: str, prompt: str, *, streamed: bool, max_tokens: int) -> dict[str, Any]:
    """Return an ordinary chat completion request."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0.0,
    }
    if streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def text_of_event(line: bytes) -> tuple[str, str]:
    """Return text and error of one line of a server-sent event stream; both may be empty."""
    if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
        return "", ""
    event = json.loads(line[6:])
    if "error" in event:
        return "", str(event["error"].get("message", "error"))
    deltas = (choice.get("delta") or {} for choice in event.get("choices", ()))
    return "".join(delta.get("content") or "" for delta in deltas), ""


class Traffic:
    """Keeps a fixed number of clients busy until it is stopped."""

    def __init__(
        self,
        base_url: str,
        model: str,
        prompts: Sequence[str],
        clock: Clock,
        *,
        clients: int = 4,
        max_tokens: int = 48,
        pause_s: float = 0.05,
        rng: random.Random | None = None,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self._base_url = base_url
        self._model = model
        self._prompts = tuple(prompts)
        self._clock = clock
        self._clients = clients
        self._max_tokens = max_tokens
        self._pause_s = pause_s
        self._rng = rng or random.Random(7)  # noqa: S311
        self._tasks: list[asyncio.Task[None]] = []
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Start the clients."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        self._session = aiohttp.ClientSession(timeout=timeout)
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(self._clients)]

    async def stop(self) -> None:
        """Stop the clients; requests under way are abandoned and not counted."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def clean_answer(self, engine_url: str, prompt: str) -> str:
        """Return what an engine answers to a prompt when it is asked past the agent."""
        exchange = Exchange("clean", prompt, streamed=False, started_at=self._clock())
        await self._exchange(exchange, engine_url)
        return exchange.text

    async def _client(self, number: int) -> None:
        turn = 0
        while True:
            turn += 1
            prompt = self._rng.choice(self._prompts)
            await self._ask(f"demo-{number}-{turn}", prompt, streamed=turn % 2 == 0)
            await asyncio.sleep(self._pause_s)

    async def _ask(self, request_id: str, prompt: str, *, streamed: bool) -> None:
        exchange = Exchange(request_id, prompt, streamed, self._clock())
        try:
            await self._exchange(exchange, self._base_url)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            exchange.error = type(error).__name__
        exchange.finished_at = self._clock()
        self.exchanges.append(exchange)

    async def _exchange(self, exchange: Exchange, base_url: str) -> None:
        assert self._session is not None  # noqa: S101
        body = request_body(
            self._model, exchange.prompt, streamed=exchange.streamed, max_tokens=self._max_tokens
        )
        headers = {"X-Request-Id": exchange.request_id}
        url = f"{base_url}/v1/chat/completions"
        async with self._session.post(url, json=body, headers=headers) as response:
            exchange.status = response.status
            exchange.instance = response.headers.get("X-Gatemesh-Instance", "")
            if exchange.streamed and response.status == OK:
                await self._read_stream(exchange, response)
            else:
                self._read_whole(exchange, await response.read())

    async def _read_stream(self, exchange: Exchange, response: aiohttp.ClientResponse) -> None:
        async for line in response.content:
            text, error = text_of_event(line.strip())
            exchange.error = exchange.error or error
            exchange.text += text

    def _read_whole(self, exchange: Exchange, body: bytes) -> None:
        if exchange.status != OK:
            exchange.error = f"HTTP {exchange.status}"
            return
        with suppress(KeyError, IndexError, ValueError):
            message = json.loads(body)["choices"][0]["message"]
            exchange.text = message.get("content") or ""
