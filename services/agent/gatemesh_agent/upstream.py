"""The agent's side towards the engines: pooled connections, and a deadline on every wait."""

import asyncio
import io
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import hdrs
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from gatemesh_agent.connections import Answer, ConnectError, Connections, target_of
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

    def with_body(self, body: bytes) -> "Order":
        """Return the same request with another body."""
        return Order(self.method, self.path, self.headers, body)


class Reply:
    """An instance's answer whose headers are here and whose body is still to be read."""

    def __init__(
        self,
        response: aiohttp.ClientResponse | Answer,
        patience: Patience,
        begun_s: float,
        alarm: "Alarm | None" = None,
    ) -> None:
        self.response = response
        self._patience = patience
        self._ends_s = begun_s + patience.total_s
        self._alarm = alarm or Alarm()

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
            return await self._read(self._patience.first_byte_s)
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
            return await self._read(wait_s)
        except TimeoutError:
            return None
        except (aiohttp.ClientError, OSError) as error:
            raise StreamBrokenError("broke off") from error

    async def _read(self, wait_s: float) -> bytes:
        alarm = self._alarm
        alarm.set(wait_s)
        try:
            return await self.response.content.readany()
        except asyncio.CancelledError:
            if alarm.was_it():
                raise TimeoutError from None
            raise
        finally:
            alarm.lift()

    def close(self) -> None:
        """Give the connection back if the answer has been read, else cut it."""
        self._alarm.stop()
        if self.response.content.at_eof():
            self.response.release()
        else:
            self.response.close()

    async def whole(self, begun: bytes, limit_bytes: int) -> tuple[bytes, bool]:
        """Return the body that began so, and whether that is all; never much above the limit.

        Raises:
            StreamBrokenError: as `more` does.
        """
        pieces, size = [begun], len(begun)
        if size <= limit_bytes and self.response.content.at_eof():
            # A small answer is all there with its first bytes; waiting for no more takes a while.
            return begun, True
        while size <= limit_bytes:
            piece = await self.more()
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces), False


class Alarm:
    """Breaks off a wait that lasts too long; one timer for all waits of an answer.

    A timer for each wait, set and lifted with every token, took longer than reading the token.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due_s = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._rings_s = math.inf
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._rang = False

    def set(self, wait_s: float) -> None:
        """Begin a wait of the running task."""
        self._task = task = asyncio.current_task()
        self._cancelling = 0 if task is None else task.cancelling()
        self._rang = False
        self._due_s = due_s = self._loop.time() + wait_s
        if due_s < self._rings_s:
            self._wind(due_s)

    def was_it(self) -> bool:
        """Return True where the wait was cancelled by the alarm alone, and take that back."""
        task = self._task
        return self._rang and task is not None and task.uncancel() <= self._cancelling

    def lift(self) -> None:
        """The wait is over."""
        self._due_s = math.inf

    def stop(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _wind(self, at_s: float) -> None:
        self.stop()
        self._rings_s = at_s
        self._timer = self._loop.call_at(at_s, self._ring)

    def _ring(self) -> None:
        self._rings_s = math.inf
        if self._due_s == math.inf:
            return
        if self._loop.time() < self._due_s:
            self._wind(self._due_s)
        else:
            # As asyncio.timeout does it: the answer can still be read afterwards.
            self._rang = True
            if self._task is not None:
                self._task.cancel()


class Upstream:
    """Sends requests to instances exactly as they are, and never follows, stores or unpacks."""

    def __init__(
        self, session: aiohttp.ClientSession, patience: Patience, connections: Connections
    ) -> None:
        self._session = session
        self._patience = patience
        self._connections = connections

    @asynccontextmanager
    async def ask(self, base_url: str, order: Order) -> AsyncIterator[Reply]:
        """Send a request and hand out the answer; leaving early aborts it at the engine.

        Raises:
            InstanceFailedError: no connection, or it broke before the answer's headers.
            InstanceSilentError: no headers in time.
        """
        reply = await self.open(base_url, order)
        try:
            yield reply
        finally:
            reply.close()

    async def open(self, base_url: str, order: Order) -> Reply:
        """Send a request and return the answer, which has to be closed.

        Raises:
            InstanceFailedError: no connection, or it broke before the answer's headers.
            InstanceSilentError: no headers in time.
        """
        begun_s, alarm = time.monotonic(), Alarm()
        try:
            response = await self._request(base_url, order, alarm)
        except BaseException:
            alarm.stop()
            raise
        return Reply(response, self._patience, begun_s, alarm)

    async def _request(
        self, base_url: str, order: Order, alarm: "Alarm"
    ) -> aiohttp.ClientResponse | Answer:
        # The alarm of the whole answer: a timer of its own for the headers takes as long again.
        alarm.set(self._patience.first_byte_s)
        try:
            return await self._send(base_url, order)
        except asyncio.CancelledError:
            if alarm.was_it():
                raise InstanceSilentError(self._patience.first_byte_s) from None
            raise
        except UNREACHABLE as error:
            raise InstanceFailedError("unreachable", "accepts no connection") from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise InstanceSilentError(self._patience.first_byte_s) from error
            raise InstanceFailedError("broken", "broke the connection before its answer") from error
        finally:
            alarm.lift()

    async def _send(self, base_url: str, order: Order) -> aiohttp.ClientResponse | Answer:
        body = order.body
        if order.method == hdrs.METH_POST and isinstance(body, bytes) and is_plain(order, body):
            target = target_of(base_url)
            if target is not None:
                return await self._connections.post(target, order.path, order.headers, body)
        return await self._session.request(
            order.method,
            URL(base_url + order.path, encoded=True),
            headers=order.headers,
            data=sendable(body),
            skip_auto_headers=NO_AUTOMATIC_HEADERS,
            allow_redirects=False,
        )


UNREACHABLE = (ConnectError, aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def is_plain(order: Order, body: bytes) -> bool:
    """Return True for a request that a plain connection can carry as it is."""
    path = order.path
    return len(body) <= LARGE_BODY_BYTES and path.isascii() and "#" not in path


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


@asynccontextmanager
async def open_upstream(settings: AgentSettings) -> AsyncIterator[Upstream]:
    """Hand out an agent's side towards the engines; at the end its connections are closed."""
    connections = Connections(
        connect_s=settings.connect_s,
        idle_s=settings.pooled_idle_s,
        max_header_bytes=settings.max_header_bytes,
    )
    try:
        async with open_session(settings) as session:
            yield Upstream(session, patience_of(settings), connections)
    finally:
        connections.close()


def patience_of(settings: AgentSettings) -> Patience:
    """Return the waits that the settings allow."""
    return Patience(settings.first_byte_s, settings.idle_s, settings.total_s)
