"""The agent's side towards its clients: bodies in, answers out, with a deadline on slow readers."""

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import hdrs, web
from multidict import CIMultiDict, CIMultiDictProxy

from gatemesh_agent.errors import ClientGoneError
from gatemesh_agent.headers import INSTANCE, REQUEST_ID, passing
from gatemesh_agent.metering import Meter

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

NEVER_WAITS_BYTES = 2**14
"""So much in the buffer of a connection makes no writer wait: a quarter of asyncio's limit."""


class WholeResponse(web.StreamResponse):
    """An answer of known length: status and headers leave with the first part of the body."""

    _send_headers_immediately = False


async def read_body(request: web.BaseRequest, limit_bytes: int) -> bytes | None:
    """Return a request's whole body, None when it is larger than the limit.

    Raises:
        ClientGoneError: the client left within it.
    """
    if (request.content_length or 0) > limit_bytes:
        return None
    await allow_body(request)
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.content.iter_any():
            size += len(piece)
            if size > limit_bytes:
                return None
            pieces.append(piece)
    except (web.RequestPayloadError, ConnectionError) as error:
        raise ClientGoneError("the client left within its request") from error
    return b"".join(pieces)


def body_at_hand(request: web.BaseRequest, limit_bytes: int) -> bytes | None:
    """Return a request's whole body where it came with its headers and nobody has to wait for it.

    None where it did not, or is larger than the limit.
    """
    content = request.content
    if not content.is_eof() or content.exception() or hdrs.EXPECT in request.headers:
        return None
    return content.read_nowait(-1) if content.total_bytes <= limit_bytes else None


async def allow_body(request: web.BaseRequest) -> None:
    """Tell a client that waits for leave to send its body that it may."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(CONTINUE)


class Client:
    """Writes one answer to one client."""

    def __init__(
        self,
        request: web.BaseRequest,
        request_id: str,
        stall_s: float,
        shape: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._request = request
        self._shape = shape
        self.request_id = request_id
        self._stall_s = stall_s
        self._response: web.StreamResponse | None = None
        self.meter: Meter | None = None
        """Sees what the client gets; None where nobody asks."""

    @property
    def begun(self) -> bool:
        """True when the client has got the status: nobody else can answer any more."""
        return self._response is not None

    @property
    def status(self) -> int:
        """The status that was sent; 499 when the client left before."""
        return self._response.status if self._response else 499

    @property
    def response(self) -> web.StreamResponse:
        """What the server is to be handed back."""
        return self._response or web.Response(status=499)

    async def begin(
        self,
        status: int,
        reason: str | None,
        headers: Mapping[str, str] | CIMultiDictProxy[str],
        instance_id: str | None,
        length: int | None,
        **extra: str,
    ) -> None:
        """Send status and headers of an engine's answer; `length` None leaves it open.

        Raises:
            ClientGoneError: the client has left.
        """
        sent = passing(headers, hdrs.CONTENT_LENGTH)
        if length is not None:
            sent[hdrs.CONTENT_LENGTH] = str(length)
        if instance_id is not None:
            sent[INSTANCE] = instance_id
        sent[REQUEST_ID] = self.request_id
        if extra:
            sent.update({name.replace("_", "-"): value for name, value in extra.items()})
        kind = web.StreamResponse if length is None else WholeResponse
        response = kind(status=status, reason=reason, headers=sent)
        try:
            await response.prepare(self._request)
        except ConnectionError as error:
            raise ClientGoneError("the client left before its answer") from error
        self._response = response

    async def write(self, data: bytes) -> None:
        """Send a part of the body; returns when the client has taken enough of it.

        Raises:
            ClientGoneError: the client has left, or does not read.
        """
        assert self._response is not None  # noqa: S101
        if self.meter is not None:
            self.meter.see(data)
        try:
            if self._has_room(len(data)):
                # A timer for each token would take longer than sending it.
                await self._response.write(data)
            else:
                async with asyncio.timeout(self._stall_s):
                    await self._response.write(data)
        except ConnectionError as error:
            raise ClientGoneError("the client left within its answer") from error
        except TimeoutError as error:
            self.abort()
            raise ClientGoneError("the client did not read its answer") from error

    def _has_room(self, size: int) -> bool:
        """Return True when nobody waits for the client to read before this is on its way."""
        transport = self._request.transport
        waiting = transport.get_write_buffer_size() if transport is not None else 0
        return waiting + size < NEVER_WAITS_BYTES

    async def end(self) -> None:
        """End the body in order.

        Raises:
            ClientGoneError: the client has left.
        """
        assert self._response is not None  # noqa: S101
        try:
            if self._has_room(0):
                await self._response.write_eof()
                return
            async with asyncio.timeout(self._stall_s):
                await self._response.write_eof()
        except ConnectionError as error:
            raise ClientGoneError("the client left within its answer") from error
        except TimeoutError as error:
            self.abort()
            raise ClientGoneError("the client did not read its answer") from error

    async def fail(
        self, status: int, body: bytes, instance_id: str | None = None, **extra: str
    ) -> None:
        """Send an error of the agent's own as the whole answer, in the shape of its route.

        Raises:
            ClientGoneError: the client has left.
        """
        body = self._shape(body)
        headers: CIMultiDict[str] = CIMultiDict({hdrs.CONTENT_TYPE: "application/json"})
        headers.update({name.replace("_", "-"): value for name, value in extra.items()})
        await self.begin(status, None, headers, instance_id, len(body))
        await self.write(body)
        await self.end()

    def abort(self) -> None:
        """Cut the connection: the client must not take a torn answer for a whole one."""
        if self._request.transport is not None:
            self._request.transport.abort()
