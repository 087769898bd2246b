"""Plain connections to engines, for what nearly every request is: a POST with a small body.

A thin way around `aiohttp.ClientSession`, on the same parser, writer and flow control: no URLs,
cookies, redirects or traces, half of whose time went into things that the agent never uses.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy

HTTP_PORT = 80
INFORMATIONAL = range(100, 200)
SWITCHING_PROTOCOLS = 101


class Target(NamedTuple):
    """Where an engine listens."""

    host: str
    port: int
    prefix: str
    """Path of the base URL; comes before that of the request."""
    named: str
    """The `Host` header."""


@lru_cache(maxsize=1024)
def target_of(base_url: str) -> Target | None:
    """Return where a base URL leads; None where it takes more than a plain connection."""
    try:
        parts = urlsplit(base_url)
        port = parts.port or HTTP_PORT
    except ValueError:
        return None
    host = parts.hostname
    plain = parts.scheme == "http" and host and host.isascii() and "@" not in parts.netloc
    if not plain or host is None or parts.query or parts.fragment or not parts.path.isascii():
        return None
    shown = f"[{host}]" if ":" in host else host
    named = shown if port == HTTP_PORT else f"{shown}:{port}"
    return Target(host, port, parts.path.rstrip("/"), named)


class ConnectError(OSError):
    """An engine accepts no connection."""


class Answer:
    """An engine's answer whose headers are here."""

    def __init__(
        self,
        message: RawResponseMessage,
        content: StreamReader,
        connection: ResponseHandler,
        pool: "Connections",
        target: Target,
    ) -> None:
        self.status = message.code
        self.reason = message.reason
        self.headers: CIMultiDictProxy[str] = message.headers
        self.content = content
        self._connection = connection
        self._pool = pool
        self._target = target

    @property
    def content_type(self) -> str:
        """The media type without its parameters, in small letters."""
        return self.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()

    def release(self) -> None:
        """Keep the connection for the next request: the answer has been read."""
        self._pool.keep(self._target, self._connection)

    def close(self) -> None:
        """Cut the connection: the engine is to stop working on this answer."""
        self._connection.close()


class Connections:
    """Opens connections, keeps those that are free for a while, and sends requests over them."""

    def __init__(
        self, *, connect_s: float, idle_s: float, max_header_bytes: int, read_bytes: int = 2**16
    ) -> None:
        self._connect_s = connect_s
        self._idle_s = idle_s
        self._max_header_bytes = max_header_bytes
        self._read_bytes = read_bytes
        self._free: dict[Target, deque[tuple[float, ResponseHandler]]] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def post(
        self, target: Target, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Send a request and return its answer once the headers are here.

        Raises:
            ConnectError: no connection in time.
            aiohttp.ClientError: the connection broke.
        """
        connection = self._free_one(target)
        # Compared with None: a connection without messages is as false as an empty list.
        if connection is None:
            connection = await self._open(target)
        try:
            connection.set_response_params(
                auto_decompress=False,
                # A body without a length ends with its connection.
                read_until_eof=True,
                read_bufsize=self._read_bytes,
                max_line_size=self._max_header_bytes,
                max_field_size=self._max_header_bytes,
            )
            await self._write(connection, target, path, headers, body)
            message, content = await connection.read()
            while message.code in INFORMATIONAL and message.code != SWITCHING_PROTOCOLS:
                message, content = await connection.read()
        except BaseException:
            connection.close()
            raise
        return Answer(message, content, connection, self, target)

    async def _write(
        self,
        connection: ResponseHandler,
        target: Target,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        sent: CIMultiDict[str] = CIMultiDict({hdrs.HOST: target.named})
        sent.extend(headers)
        sent[hdrs.CONTENT_LENGTH] = str(len(body))
        writer = StreamWriter(connection, asyncio.get_running_loop())
        await writer.write_headers(f"POST {target.prefix}{path} HTTP/1.1", sent)
        # Never waited for: an engine may answer before it has read all of it.
        await writer.write(body, drain=False)

    async def _open(self, target: Target) -> ResponseHandler:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(
                    lambda: ResponseHandler(loop), target.host, target.port
                )
        except OSError as error:
            raise ConnectError(error.errno, error.strerror) from error
        return connection

    def _free_one(self, target: Target) -> ResponseHandler | None:
        free = self._free.get(target)
        since_s = asyncio.get_running_loop().time() - self._idle_s
        while free:
            # The newest first: it is the least likely to be closed by the engine just now.
            kept_s, connection = free.pop()
            if kept_s >= since_s and connection.is_connected() and not connection.should_close:
                return connection
            connection.close()
        return None

    def keep(self, target: Target, connection: ResponseHandler) -> None:
        """Keep a connection whose answer has been read, unless its engine wants it closed."""
        if connection.should_close or not connection.is_connected():
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._free.setdefault(target, deque()).append((loop.time(), connection))
        if self._sweep is None:
            self._sweep = loop.call_later(self._idle_s, self._close_idle)

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        since_s = loop.time() - self._idle_s
        for target, free in list(self._free.items()):
            while free and free[0][0] < since_s:
                free.popleft()[1].close()
            if not free:
                del self._free[target]
        again = bool(self._free)
        self._sweep = loop.call_later(self._idle_s, self._close_idle) if again else None

    def close(self) -> None:
        """Close what is kept."""
        if self._sweep is not None:
            self._sweep.cancel()
        for free in self._free.values():
            for _, connection in free:
                connection.close()
        self._free.clear()
