"""A link to a server that can be cut, shut, frozen or made deaf while the stack talks over it."""

import asyncio
import random
import threading
from collections.abc import Coroutine
from typing import Any, Self
from urllib.parse import urlsplit

from gatemesh_mesh.ports import LOOPBACK, choose_ports

CALL_DEADLINE_S = 30.0


class Link:
    """Forwards one port of the loopback address to a server, in a thread of its own."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._port = choose_ports(["link"], random.Random())["link"]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._forth, self._back = asyncio.Event(), asyncio.Event()

    @property
    def url(self) -> str:
        """The server's address over the link."""
        login, _, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{login}@{LOOPBACK}:{self._port}").geturl()

    def __enter__(self) -> Self:
        self._thread.start()
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_DEADLINE_S)
        self._loop.close()

    def open(self) -> None:
        """Let everything through, on the same port each time."""
        self._call(self._open())

    def cut(self) -> None:
        """End every connection; new ones are let through."""
        self._call(self._cut())

    def shut(self) -> None:
        """End every connection and refuse new ones."""
        self._call(self._shut())

    def freeze(self) -> None:
        """Keep all connections, new ones too, and let nothing through, as a black hole does."""
        self._call(self._let(forth=False, back=False))

    def hold_answers(self) -> None:
        """Let through what goes to the server, and nothing of what it answers."""
        self._call(self._let(forth=True, back=False))

    def thaw(self) -> None:
        """Let through again what was held."""
        self._call(self._let(forth=True, back=True))

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_DEADLINE_S)

    async def _open(self) -> None:
        await self._let(forth=True, back=True)
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, LOOPBACK, self._port)

    async def _let(self, *, forth: bool, back: bool) -> None:
        for way, open_ in ((self._forth, forth), (self._back, back)):
            if open_:
                way.set()
            else:
                way.clear()

    async def _cut(self) -> None:
        under_way = list(self._under_way)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        writers = [writer]
        try:
            back, forth = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            writers.append(forth)
            await first_done(
                pump(reader, forth, self._forth),
                pump(back, writer, self._back),
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for each in writers:
                each.transport.abort()
            # A transport is closed in the next round of the loop, and must not be dropped before.
            await asyncio.sleep(0)
            self._under_way.discard(task)


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event
) -> None:
    """Forward one direction until its end; nothing is let through while it may not pass."""
    while data := await reader.read(65536):
        await may_pass.wait()
        writer.write(data)
        await writer.drain()


async def first_done(*directions: Coroutine[Any, Any, None]) -> None:
    """Return when one direction has ended, and end the other."""
    tasks = [asyncio.ensure_future(each) for each in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
