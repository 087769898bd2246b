"""Loads for gateways: clients that ask again and again, and requests at a given rate.

At a given rate each latency counts from the time at which its request was to be sent, whether or
not a connection was free by then: a gateway that stalls cannot hide what waited meanwhile.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from benchmarks.agent import HOST, compact, length_in
from benchmarks.peer_mock import prompt_of

END = b"0\r\n\r\n"
EVENT = b"data: {"
MOST_CONNECTIONS = 512


@dataclass(frozen=True)
class Ask:
    """What is asked, and by which path."""

    path: str
    model: str
    tokens: int
    stream: bool
    pace_ms: int = 0

    def request(self, port: int) -> bytes:
        """Return the request as it goes over the wire."""
        body = compact(
            {
                "model": self.model,
                "messages": [{"role": "user", "content": prompt_of(self.tokens, self.pace_ms)}],
                "temperature": 1,
                "max_tokens": 4096,
                **({"stream": True} if self.stream else {}),
            }
        )
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n"
            "Content-Type: application/json\r\nAuthorization: Bearer sk-bench\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass
class Tally:
    """What one run gave; times in seconds."""

    latencies_s: list[float] = field(default_factory=list)
    first_bytes_s: list[float] = field(default_factory=list)
    chunks: int = 0
    errors: int = 0
    wall_s: float = 0.0
    client_cpu_s: float = 0.0


class Caller(asyncio.Protocol):
    """One connection that asks one thing at a time."""

    def __init__(self, request: bytes, tally: Tally) -> None:
        self._request = request
        self._tally = tally
        self._done: asyncio.Future[None] | None = None
        self._begin_s = 0.0
        self._head = b""
        self._left = 0
        self._chunked = False
        self._tail = b""
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def ask(self, begin_s: float) -> "asyncio.Future[None]":
        """Send the request; the future ends with its answer. The latency counts from `begin_s`."""
        self._done = asyncio.get_running_loop().create_future()
        self._begin_s = begin_s
        self._head = self._tail = b""
        self._left = -1
        self.transport.write(self._request)
        return self._done

    def data_received(self, data: bytes) -> None:
        """Take a piece of the answer."""
        if self._left < 0:
            if not self._head:
                self._tally.first_bytes_s.append(time.perf_counter() - self._begin_s)
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._take_head(head)
        if self._chunked:
            self._take_chunks(data)
        else:
            self._left -= len(data)
            if self._left <= 0:
                self._end()

    def _take_head(self, head: bytes) -> None:
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            self._tally.errors += 1
        self._chunked = b"chunked" in head.lower()
        self._left = length_in(head)

    def _take_chunks(self, data: bytes) -> None:
        seam = len(self._tail)
        joined = self._tail + data
        self._tally.chunks += joined.count(EVENT) - self._tail.count(EVENT)
        self._tail = joined[-len(EVENT) + 1 :]
        if joined.endswith(END) and len(joined) > seam:
            self._end()

    def _end(self) -> None:
        self._tally.latencies_s.append(time.perf_counter() - self._begin_s)
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        """Count an answer that is missing."""
        self.closed = True
        if self._done is not None and not self._done.done():
            self._tally.errors += 1
            self._done.set_result(None)


async def connect(port: int, request: bytes, tally: Tally) -> Caller:
    """Return a connection to a gateway."""
    loop = asyncio.get_running_loop()
    _, caller = await loop.create_connection(lambda: Caller(request, tally), HOST, port)
    return caller


async def closed_loop(
    port: int, ask: Ask, clients: int, seconds: float, spread_s: float = 0.0
) -> Tally:
    """Have so many clients ask again and again; the first requests are spread over a time."""
    tally, request = Tally(), ask.request(port)
    callers = [await connect(port, request, tally) for _ in range(clients)]
    cpu, begun_s = time.process_time(), time.perf_counter()
    until_s = begun_s + seconds

    async def go_on(number: int, caller: Caller) -> None:
        await asyncio.sleep(spread_s * number / clients)
        while (now_s := time.perf_counter()) < until_s and not caller.closed:
            await caller.ask(now_s)

    await asyncio.gather(*(go_on(number, caller) for number, caller in enumerate(callers)))
    return finish(tally, callers, begun_s, cpu)


async def open_loop(port: int, ask: Ask, per_s: float, seconds: float) -> Tally:
    """Send requests at a rate, each when it is due, over as many connections as that takes."""
    tally, request = Tally(), ask.request(port)
    free: deque[Caller] = deque()
    callers: list[Caller] = []
    tasks: list[asyncio.Task[None]] = []
    cpu, begun_s = time.process_time(), time.perf_counter()

    async def one(due_s: float) -> None:
        while free and free[0].closed:
            free.popleft()
        if free:
            caller = free.popleft()
        else:
            caller = await connect(port, request, tally)
            callers.append(caller)
        await caller.ask(due_s)
        free.append(caller)

    for number in range(int(per_s * seconds)):
        due_s = begun_s + number / per_s
        await asyncio.sleep(max(due_s - time.perf_counter(), 0))
        if len(callers) - len(free) >= MOST_CONNECTIONS:
            tally.errors += 1
            continue
        tasks.append(asyncio.ensure_future(one(due_s)))
    await asyncio.gather(*tasks)
    return finish(tally, callers, begun_s, cpu)


def finish(tally: Tally, callers: Sequence[Caller], begun_s: float, cpu: float) -> Tally:
    """Close what is open and note what the run took."""
    tally.wall_s = time.perf_counter() - begun_s
    tally.client_cpu_s = time.process_time() - cpu
    for caller in callers:
        caller.transport.close()
    return tally
