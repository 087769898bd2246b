"""A gate in front of a server: shut it, and the server is away for whoever comes through it."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Gate:
    """Forwards one port of the loopback address to a server, while it is open."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The server's address through the gate."""
        login, _, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{login}@127.0.0.1:{self._port}").geturl()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.shut()

    async def open(self) -> None:
        """Let connections through, on the same port each time."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Cut every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        writers = [writer]
        try:
            port = self._parts.port or 0
            back, forth = await asyncio.open_connection(self._parts.hostname, port)
            writers.append(forth)
            await asyncio.gather(_pump(reader, forth), _pump(back, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for each in writers:
                each.transport.abort()
            # A transport is closed in the next round of the loop, and must not be dropped before.
            await asyncio.sleep(0)
            self._under_way.discard(task)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        with suppress(OSError):
            writer.close()
