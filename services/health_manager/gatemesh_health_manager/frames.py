"""Deliveries picked out of what a broker sends, unpacked no further than a reader needs.

The client unpacks three frames of every message by way of tables, queues and a task; for verdicts
that was more than everything that is done with them. All other frames are left to it.
"""

import asyncio
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, NamedTuple, SupportsIndex

import aio_pika
from aiormq import AMQPConnectionError, TransportFactory
from aiormq.abc import DeliveredMessage
from pamqp import commands, frame
from pamqp.constants import (
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
)
from pamqp.exceptions import PAMQPException
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat
from yarl import URL

KINDS = frozenset({FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT})
FRAME_HEAD = Struct(">BHI")
"""Kind, channel, and size of what follows."""
METHOD = Struct(">I")
LONG = Struct(">Q")
DELIVER = commands.Basic.Deliver.index
TAG_PLACE = FRAME_HEADER_SIZE + METHOD.size
"""Where the consumer's name stands, with its length before it; then comes the tag."""
SIZE_PLACE = FRAME_HEADER_SIZE + 4
"""Where the size of a body stands: behind class and weight."""
SIGN_OF_LIFE = Heartbeat().marshal()


class UnreadableError(ValueError):
    """What a message says beside its body cannot be unpacked."""


class Delivery(NamedTuple):
    """One message: its tag, its body, and the frames that say the rest."""

    tag: int
    body: bytes
    method: bytes
    header: bytes

    def unpacked(self) -> aio_pika.IncomingMessage:
        """Return the message with all that it says; it cannot be acknowledged.

        Raises:
            UnreadableError: its properties are none that are known.
        """
        try:
            method, header = (frame.unmarshal(whole)[2] for whole in (self.method, self.header))
        except (PAMQPException, ValueError, LookupError) as error:
            raise UnreadableError(str(error)) from error
        if not isinstance(method, commands.Basic.Deliver) or not isinstance(header, ContentHeader):
            raise UnreadableError("other frames than those of a delivery")
        # A message that is not to be acknowledged uses no channel.
        said = DeliveredMessage(delivery=method, header=header, body=self.body, channel=None)  # type: ignore[arg-type]
        return aio_pika.IncomingMessage(said, no_ack=True)


class Sieve:
    """Takes the deliveries out of a stream of frames, however it is cut; one queue, one channel."""

    def __init__(self) -> None:
        self._left = b""
        self._method = self._header = b""
        self._parts: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> tuple[list[Delivery], bytes]:
        """Return the deliveries that are complete now, and all that is for the client.

        Where there are deliveries, the client gets a heartbeat in their stead: it takes a broker
        from which it hears nothing for dead. What is no frame is for the client to refuse.
        """
        data, start = self._left + data, 0
        taken: list[Delivery] = []
        rest: list[bytes] = []
        while len(data) - start > FRAME_HEADER_SIZE:
            kind, _, size = FRAME_HEAD.unpack_from(data, start)
            end = start + FRAME_HEADER_SIZE + size + 1 if kind in KINDS else len(data)
            if len(data) < end:
                break
            whole = data[start:end]
            if not self._keep(kind, whole, taken):
                rest.append(whole)
            start = end
        self._left = data[start:]
        return taken, b"".join([*rest, SIGN_OF_LIFE] if taken else rest)

    def _keep(self, kind: int, whole: bytes, taken: list[Delivery]) -> bool:
        """Take in a frame of a delivery, the last one completes it; False for all others."""
        if kind not in KINDS or whole[-1] != FRAME_END:
            return False
        if kind == FRAME_METHOD:
            is_delivery = METHOD.unpack_from(whole, FRAME_HEADER_SIZE)[0] == DELIVER
            if is_delivery:
                self._method = whole
            return is_delivery
        if not self._method or kind == FRAME_HEARTBEAT:
            return False
        if kind == FRAME_HEADER:
            self._header, self._parts = whole, []
            (self._missing,) = LONG.unpack_from(whole, SIZE_PLACE)
        else:
            self._parts.append(whole[FRAME_HEADER_SIZE:-1])
            self._missing -= len(self._parts[-1])
        if self._missing <= 0:
            taken.append(self._complete())
        return True

    def _complete(self) -> Delivery:
        method, self._method = self._method, b""
        (tag,) = LONG.unpack_from(method, TAG_PLACE + 1 + method[TAG_PLACE])
        return Delivery(tag, b"".join(self._parts), method, self._header)


Take = Callable[[list[Delivery]], None]


class SievedReader(asyncio.StreamReader):
    """What the client reads from: all that a broker sends but deliveries, which are handed over."""

    def __init__(self, take: Take) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._sieve = Sieve()
        self._take = take

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Take in what came."""
        taken, rest = self._sieve.feed(bytes(data))
        if rest:
            super().feed_data(rest)
        if taken:
            self._take(taken)


class SievedTransport(TransportFactory):
    """Opens the client's connection in the usual ways, with a reader of ours."""

    def __init__(self, take: Take) -> None:
        self._take = take

    async def create(
        self, url: URL, **options: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, with TLS where the address says so.

        Raises:
            AMQPConnectionError: nobody is there.
        """
        provider = options.pop("ssl_context_provider")
        tls = await provider.get_context() if url.scheme == "amqps" else None
        loop, reader = asyncio.get_running_loop(), SievedReader(self._take)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.create_connection(
                lambda: protocol, url.host, url.port, ssl=tls, **options
            )
        except OSError as error:
            raise AMQPConnectionError(*error.args) from error
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class SievedConnection(aio_pika.Connection):
    """The client's connection, but that deliveries go to `take`."""

    take: Take
    """To be set before anything is consumed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.kwargs["transport_factory"] = SievedTransport(self._hand_over)

    def _hand_over(self, taken: list[Delivery]) -> None:
        self.take(taken)
