"""Engines that stream until they are told to end, and clients that notice every cut."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

EVENT_EVERY_S = 0.5
SENT = "X-Sent"
"""Header with the moment at which a client began to send."""


class StreamingEngine:
    """Answers `/who` at once and `/stream` until `finish` is set; remembers when each was sent."""

    def __init__(self, name: str, finish: asyncio.Event) -> None:
        self.name = name
        self.finish = finish
        self.running = 0
        self.sent: list[float] = []
        app = web.Application()
        app.router.add_get("/who", self._who)
        app.router.add_get("/stream", self._stream)
        app.router.add_get("/health", self._health)
        self._runner = web.AppRunner(app, access_log=None)
        self._site: web.TCPSite | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self._runner.addresses[0]
        return f"{host}:{port}"

    async def start(self) -> None:
        """Listen on a free port."""
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await self._site.start()

    async def stop(self, grace_s: float) -> bool:
        """Do as an engine does on SIGTERM: accept nothing, let running requests end, then die."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self.running:  # noqa: ASYNC110 (handlers end one by one)
                    await asyncio.sleep(0.02)
        left = not self.running
        await self._runner.cleanup()
        return left

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _who(self, request: web.Request) -> web.Response:
        self.sent.append(float(request.headers[SENT]))
        return web.Response(text=self.name)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self.sent.append(float(request.headers[SENT]))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        self.running += 1
        try:
            await response.prepare(request)
            number = 0
            while not self.finish.is_set():
                await response.write(f"data: {number} {self.name}\n\n".encode())
                number += 1
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.finish.wait(), EVENT_EVERY_S)
            await response.write(b"data: [DONE]\n\n")
        finally:
            self.running -= 1
        return response


@asynccontextmanager
async def running_engines(count: int = 2) -> AsyncIterator[list[StreamingEngine]]:
    """Give so many engines that share one order to finish."""
    finish = asyncio.Event()
    engines = [StreamingEngine(f"engine-{number}", finish) for number in range(count)]
    try:
        for engine in engines:
            await engine.start()
        yield engines
    finally:
        finish.set()
        for engine in engines:
            await engine.stop(5.0)


def now_header() -> dict[str, str]:
    """Return the header of a request that is sent now."""
    return {SENT: repr(time.monotonic())}


@dataclass
class Streams:
    """Running streams and how they went."""

    url: str
    begun: int = 0
    whole: int = 0
    cut: list[str] = field(default_factory=list)

    async def read(self, session: aiohttp.ClientSession) -> None:
        """Read one stream to its end; every event must come, in order, and the last one too."""
        lines: list[str] = []
        try:
            async with session.get(f"{self.url}/stream", headers=now_header()) as response:
                await self._collect(response, lines)
        except aiohttp.ClientError as error:
            self.cut.append(f"{type(error).__name__} after {len(lines)} events")
            return
        expected = [*map(str, range(len(lines) - 1)), "[DONE]"]
        self.whole += lines == expected
        if lines != expected:
            self.cut.append(f"ended with {lines[-1:]} after {len(lines)} events")

    async def _collect(self, response: aiohttp.ClientResponse, lines: list[str]) -> None:
        async for raw in response.content:
            if raw.strip():
                self.begun += not lines
                lines.append(raw.decode().split()[1])


@dataclass
class Traffic:
    """Short requests, one after the other, on old and on new connections."""

    url: str
    answers: list[tuple[str, float]] = field(default_factory=list)
    """Who answered, and when the request was sent."""
    faults: list[str] = field(default_factory=list)

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Ask until cancelled."""
        while True:
            await self.ask(session)
            await asyncio.sleep(0.02)

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Ask once."""
        headers = now_header()
        try:
            async with session.get(f"{self.url}/who", headers=headers) as response:
                who = await response.text()
        except aiohttp.ClientError as error:
            self.faults.append(type(error).__name__)
            return
        if response.status == web.HTTPOk.status_code:
            self.answers.append((who, float(headers[SENT])))
        else:
            self.faults.append(str(response.status))

    def after(self, moment: float) -> list[str]:
        """Return who answered requests that were sent after a moment."""
        return [who for who, sent in self.answers if sent > moment]


@asynccontextmanager
async def clients(*, keep_alive: bool = True) -> AsyncIterator[aiohttp.ClientSession]:
    """Give a session without a limit of connections."""
    connector = aiohttp.TCPConnector(limit=0, force_close=not keep_alive)
    timeout = aiohttp.ClientTimeout(total=240)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield session


@asynccontextmanager
async def in_background(*work: object) -> AsyncIterator[None]:
    """Run coroutines beside the test; what they raise fails it."""
    tasks = [asyncio.ensure_future(each) for each in work]  # type: ignore[call-overload]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    raise_first(results)


def raise_first(results: Iterable[object]) -> None:
    """Raise what a task raised by itself."""
    for result in results:
        if isinstance(result, Exception):
            raise result
