"""The agent's side towards the engines: one connection pool, and a deadline on every wait."""

import asyncio
import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.settings import AgentSettings

NO_AUTOMATIC_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")

LARGE_BODY_BYTES = 2**19


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an instance may take, in seconds."""

    first_byte_s: float
    idle_s: float
    total_s: float


@dataclass(frozen=True, slots=True)
class Order:
    """One request as it goes to an instance."""

    method: str
    path: str
    """Path and query as the client wrote them."""
    headers: CIMultiDict[str]
    body: Any = None
    """Bytes, an asynchronous iterable of bytes, or None."""


class Reply:
    """An instance's answer whose headers are here and whose body is still to be read."""

    def __init__(
        self, response: aiohttp.ClientResponse, patience: Patience, begun_s: float
    ) -> None:
        self.response = response
        self._patience = patience
        self._ends_s = begun_s + patience.total_s

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status

    @property
    def is_stream(self) -> bool:
        """True for server-sent events."""
        return self.response.content_type == "text/event-stream"

    @property
    def is_plain_json(self) -> bool:
        """True for JSON that is not compressed."""
        return (
            self.response.content_type == "application/json"
            and "Content-Encoding" not in self.response.headers
        )

    async def first(self) -> bytes:
        """Return the first bytes of the body, empty when it has none.

        Raises:
            InstanceFailedError: the connection broke before.
            InstanceSilentError: nothing came in time.
        """
        try:
            async with asyncio.timeout(self._patience.first_byte_s):
                return await self.response.content.readany()
        except TimeoutError as error:
            raise InstanceSilentError(self._patience.first_byte_s) from error
        except (aiohttp.ClientError, OSError) as error:
            raise InstanceFailedError("broken", "broke the connection before its answer") from error

    async def more(self) -> bytes:
        """Return further bytes, empty at the end.

        Raises:
            StreamBrokenError: the connection broke, or was silent for too long.
        """
        wait_s = min(self._patience.idle_s, self._ends_s - time.monotonic())
        data = await self.within(max(wait_s, 0.0))
        if data is None:
            raise StreamBrokenError("was silent for too long")
        return data

    async def within(self, wait_s: float) -> bytes | None:
        """Return further bytes, empty at the end; None when none came in this time.

        Raises:
            StreamBrokenError: the connection broke.
        """
        try:
            async with asyncio.timeout(wait_s):
                return await self.response.content.readany()
        except TimeoutError:
            return None
        except (aiohttp.ClientError, OSError) as error:
            raise StreamBrokenError("broke off") from error

    async def whole(self, begun: bytes, limit_bytes: int) -> tuple[bytes, bool]:
        """Return the body that began so, and whether that is all; never much above the limit.

        Raises:
            StreamBrokenError: as `more` does.
        """
        pieces, size = [begun], len(begun)
        while size <= limit_bytes:
            piece = await self.more()
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces), False


class Upstream:
    """Sends requests to instances exactly as they are, and never follows, stores or unpacks."""

    def __init__(self, session: aiohttp.ClientSession, patience: Patience) -> None:
        self._session = session
        self._patience = patience

    @asynccontextmanager
    async def ask(self, base_url: str, order: Order) -> AsyncIterator[Reply]:
        """Send a request and hand out the answer; leaving early aborts it at the engine.

        Raises:
            InstanceFailedError: no connection, or it broke before the answer's headers.
            InstanceSilentError: no headers in time.
        """
        begun_s = time.monotonic()
        response = await self._request(base_url, order)
        try:
            yield Reply(response, self._patience, begun_s)
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def _request(self, base_url: str, order: Order) -> aiohttp.ClientResponse:
        url = URL(base_url + order.path, encoded=True)
        try:
            async with asyncio.timeout(self._patience.first_byte_s):
                return await self._session.request(
                    order.method,
                    url,
                    headers=order.headers,
                    data=sendable(order.body),
                    skip_auto_headers=NO_AUTOMATIC_HEADERS,
                    allow_redirects=False,
                )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise InstanceFailedError("unreachable", "accepts no connection") from error
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise InstanceSilentError(self._patience.first_byte_s) from error
            raise InstanceFailedError("broken", "broke the connection before its answer") from error


def sendable(body: Any) -> Any:
    """Return a body as it is sent: a large one piece by piece, so that others get their turn."""
    large = isinstance(body, bytes) and len(body) > LARGE_BODY_BYTES
    return io.BytesIO(body) if large else body


def open_session(settings: AgentSettings) -> aiohttp.ClientSession:
    """Return the client session of an agent."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=settings.pooled_idle_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.connect_s),
        auto_decompress=False,
        max_line_size=settings.max_header_bytes,
        max_field_size=settings.max_header_bytes,
        read_bufsize=2**16,
    )


def patience_of(settings: AgentSettings) -> Patience:
    """Return the waits that the settings allow."""
    return Patience(settings.first_byte_s, settings.idle_s, settings.total_s)
