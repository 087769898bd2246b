"""An engine that costs nothing: prepared answers, told by the prompt how long and how fast.

The prompt says `tokens=N pace_ms=M`; it is the one thing that every gateway passes on unchanged.
Streams leave chunk by chunk, each in a write of its own, as engines send them.
"""

import asyncio
import multiprocessing
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import cast

import uvloop

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.agent import HOST, length_in, wait_listening
from benchmarks.peer_answers import streamed, whole

STREAMED = re.compile(rb'"stream"\s*:\s*true')
WISHES = re.compile(rb"tokens=(\d+) pace_ms=(\d+)")
LOGPROBS = b'"top_logprobs"'
HEAD_END = b"\r\n\r\n"


def prompt_of(tokens: int, pace_ms: int = 0) -> str:
    """Return the prompt that has an answer of so many tokens, streamed at such a pace."""
    return f"Tell me about the sea. tokens={tokens} pace_ms={pace_ms}"


@lru_cache
def prepared(tokens: int, *, added: bool, stream: bool) -> tuple[bytes, ...]:
    """Return the writes that make up an answer."""
    return streamed(tokens, added=added) if stream else (whole(tokens, added=added),)


class MockProtocol(asyncio.Protocol):
    """Answers one request after the other on a connection."""

    def __init__(self) -> None:
        self._buffer = b""
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports have the methods but not the base class.
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        """The reader is behind."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The reader caught up."""
        self._writable.set()

    def connection_lost(self, _error: Exception | None) -> None:
        """Nobody waits for the rest."""
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer once the body is whole; what is no request for text is told that all is well."""
        self._buffer += data
        head, found, rest = self._buffer.partition(HEAD_END)
        if not found or len(rest) < length_in(head):
            return
        self._buffer = b""
        wish = WISHES.search(rest)
        if wish is None:
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            return
        streamed = STREAMED.search(rest) is not None
        writes = prepared(int(wish[1]), added=LOGPROBS in rest, stream=streamed)
        if len(writes) == 1:
            self._transport.write(writes[0])
        else:
            self._task = asyncio.ensure_future(self._send(writes, int(wish[2]) / 1000))

    async def _send(self, writes: tuple[bytes, ...], pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        for piece in writes:
            await self._writable.wait()
            self._transport.write(piece)
            due_s += pause_s
            # From the time it was due, so that a late chunk does not make the next one late.
            await asyncio.sleep(max(due_s - loop.time(), 0))


def run_mock(port: int) -> None:
    """Serve as one engine until the process is ended."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(MockProtocol, HOST, port, backlog=1024)
        await server.serve_forever()

    uvloop.run(serve())


@contextmanager
def mocks(ports: list[int]) -> Iterator[None]:
    """Run an engine on each port, in processes of their own."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=run_mock, args=(port,)) for port in ports]
    for process in processes:
        process.start()
    try:
        for port in ports:
            wait_listening(port)
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
