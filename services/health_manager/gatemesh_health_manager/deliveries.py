"""Messages of one queue as the broker sends them, unpacked no further than a reader needs.

An AMQP 0-9-1 consumer over one connection: all but deliveries goes through pamqp. What a delivery
says beside its tag and body is read only of messages that nobody can handle.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import NamedTuple, TypeVar

import aio_pika
from aiormq.abc import DeliveredMessage
from pamqp import commands, frame
from pamqp.base import Frame
from pamqp.common import FieldTable
from pamqp.constants import FRAME_END, FRAME_HEADER_SIZE
from pamqp.exceptions import PAMQPException
from pamqp.header import ContentHeader
from yarl import URL

FRAME_HEAD = Struct(">BHI")
METHOD = Struct(">HH")
SIZE = Struct(">Q")
TAG = Struct(">Q")
METHOD_FRAME, HEADER_FRAME, BODY_FRAME = 1, 2, 3
DELIVER = (60, 60)
GREETING = b"AMQP\x00\x00\x09\x01"
HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"
CHANNEL = 1
LONGEST_ANSWER_S = 10.0
HEARTBEAT_S = 30
PORTS = {"amqp": 5672, "amqps": 5671}
PROPERTIES: FieldTable = {
    "product": "gatemesh",
    "capabilities": {"consumer_cancel_notify": True, "basic.nack": True},
}

AnswerT = TypeVar("AnswerT", bound=Frame)


class DeliveriesLostError(ConnectionError):
    """The connection or its channel is closed; what was not acknowledged is delivered again."""


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
            UnreadableError: its properties are none that pamqp knows.
        """
        try:
            _, _, method = frame.unmarshal(self.method)
            _, _, header = frame.unmarshal(self.header)
        except (PAMQPException, ValueError, LookupError) as error:
            raise UnreadableError(str(error)) from error
        if not isinstance(method, commands.Basic.Deliver) or not isinstance(header, ContentHeader):
            raise UnreadableError("other frames than those of a delivery")
        # A message that is not to be acknowledged uses no channel.
        said = DeliveredMessage(delivery=method, header=header, body=self.body, channel=None)  # type: ignore[arg-type]
        return aio_pika.IncomingMessage(said, no_ack=True)


class Deliveries(asyncio.Protocol):
    """One consumer of one queue; `notify` is called whenever there is something new."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self.waiting: deque[Delivery] = deque()
        self.is_cancelled = False
        """True once the broker sends nothing more: the queue was deleted, or we asked."""
        self._notify = notify
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._missing = 0
        self._answers: deque[Frame] = deque()
        self._answered = asyncio.Event()
        self._fault: str | None = None
        self._transport: asyncio.Transport | None = None
        self._tag = "gatemesh"
        self._frames: tuple[bytes, bytes] = (b"", b"")
        self._heard_at = asyncio.get_running_loop().time()
        self._beating: asyncio.Task[None] | None = None

    # What the reader calls

    @property
    def is_lost(self) -> bool:
        """True when the connection or the channel is closed."""
        return self._fault is not None

    async def consume(self, url: URL, queue: str, prefetch: int) -> None:
        """Log in and begin to consume.

        Raises:
            DeliveriesLostError: the broker refuses it.
            TimeoutError: it does not answer.
        """
        self._write(GREETING)
        await self._answer(commands.Connection.Start)
        login = f"\0{url.user or 'guest'}\0{url.password or 'guest'}"
        self._send(commands.Connection.StartOk(PROPERTIES, "PLAIN", login, "en_US"), 0)
        tune = await self._answer(commands.Connection.Tune)
        beat_s = min(tune.heartbeat or HEARTBEAT_S, HEARTBEAT_S)
        self._send(commands.Connection.TuneOk(tune.channel_max, tune.frame_max, beat_s), 0)
        self._send(commands.Connection.Open(url.path[1:] or "/"), 0)
        await self._answer(commands.Connection.OpenOk)
        self._beating = asyncio.create_task(self._beat(beat_s))
        await self._ask(commands.Channel.Open(), commands.Channel.OpenOk)
        await self._ask(commands.Basic.Qos(prefetch_count=prefetch), commands.Basic.QosOk)
        consume = commands.Basic.Consume(queue=queue, consumer_tag=self._tag)
        await self._ask(consume, commands.Basic.ConsumeOk)

    def acknowledge(self, tag: int) -> None:
        """Acknowledge every message up to a tag."""
        self._send(commands.Basic.Ack(tag, multiple=True))

    def reject(self, tag: int) -> None:
        """Have the broker move a message to the dead letters."""
        self._send(commands.Basic.Reject(tag, requeue=False))

    async def cancel(self) -> None:
        """Have the broker send nothing more."""
        await self._ask(commands.Basic.Cancel(self._tag), commands.Basic.CancelOk)
        self.is_cancelled = True

    async def close(self) -> None:
        """Close the connection; what was not acknowledged is delivered again."""
        if self._beating is not None:
            self._beating.cancel()
        with suppress(DeliveriesLostError, TimeoutError):
            self._send(commands.Connection.Close(200, "done", 0, 0), 0)
            await self._answer(commands.Connection.CloseOk)
        if self._transport is not None:
            self._transport.close()

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a stream is needed")
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the reader."""
        self._lose(type(exc).__name__ if exc else "closed")

    def data_received(self, data: bytes) -> None:
        """Take in what came; calls `notify` once, however many messages it held."""
        self._heard_at = asyncio.get_running_loop().time()
        buffer, start, before = self._buffer, 0, len(self.waiting)
        buffer += data
        while len(buffer) - start > FRAME_HEADER_SIZE:
            kind, _, size = FRAME_HEAD.unpack_from(buffer, start)
            end = start + FRAME_HEADER_SIZE + size
            if len(buffer) <= end:
                break
            if buffer[end] != FRAME_END:
                self._lose("broken frame")
                return
            self._take(kind, bytes(buffer[start : end + 1]))
            start = end + 1
        del buffer[:start]
        if len(self.waiting) != before:
            self._notify()

    # Frames

    def _take(self, kind: int, whole: bytes) -> None:
        if kind == BODY_FRAME and self._missing:
            self._add(whole[FRAME_HEADER_SIZE:-1])
        elif kind == HEADER_FRAME:
            self._frames = (self._frames[0], whole)
            # After class and weight.
            (self._missing,) = SIZE.unpack_from(whole, FRAME_HEADER_SIZE + 4)
            self._add(b"")
        elif kind == METHOD_FRAME:
            if METHOD.unpack_from(whole, FRAME_HEADER_SIZE) == DELIVER:
                self._frames = (whole, b"")
            else:
                self._hear(frame.unmarshal(whole)[2])

    def _add(self, part: bytes) -> None:
        """Add a part of a body; the last one completes the message."""
        self._parts.append(part)
        self._missing -= len(part)
        if self._missing <= 0:
            method, header = self._frames
            # The tag stands behind class, method and the consumer's name with its length.
            at = FRAME_HEADER_SIZE + METHOD.size
            (tag,) = TAG.unpack_from(method, at + 1 + method[at])
            self.waiting.append(Delivery(tag, b"".join(self._parts), method, header))
            self._parts = []

    def _hear(self, said: object) -> None:
        """Take in an answer, or that something ends."""
        if isinstance(said, (commands.Connection.Close, commands.Channel.Close)):
            self._lose(f"{said.reply_code} {said.reply_text}")
        elif isinstance(said, commands.Basic.Cancel):
            self.is_cancelled = True
            self._notify()
        elif isinstance(said, Frame):
            self._answers.append(said)
            self._answered.set()

    def _lose(self, fault: str) -> None:
        if self._fault is None:
            self._fault = fault
        self._answered.set()
        self._notify()

    async def _beat(self, every_s: int) -> None:
        """Tell the broker that we are there; end the connection when it says nothing any more."""
        loop = asyncio.get_running_loop()
        while loop.time() - self._heard_at < 2 * every_s:
            await asyncio.sleep(every_s / 2)
            self._write(HEARTBEAT_FRAME)
        self._lose("silent")
        if self._transport is not None:
            self._transport.abort()

    async def _ask(self, question: Frame, answer: type[AnswerT]) -> AnswerT:
        self._send(question)
        return await self._answer(answer)

    async def _answer(self, wanted: type[AnswerT]) -> AnswerT:
        """Return the next answer, which must be of a kind."""
        async with asyncio.timeout(LONGEST_ANSWER_S):
            while not self._answers:
                if self._fault is not None:
                    raise DeliveriesLostError(self._fault)
                self._answered.clear()
                await self._answered.wait()
        found = self._answers.popleft()
        if not isinstance(found, wanted):
            raise DeliveriesLostError(f"the broker answered {type(found).__name__}")
        return found

    def _send(self, said: Frame, channel: int = CHANNEL) -> None:
        self._write(frame.marshal(said, channel))

    def _write(self, data: bytes) -> None:
        if self._fault is not None or self._transport is None:
            raise DeliveriesLostError(self._fault or "not connected")
        self._transport.write(data)


def tls_of(url: URL) -> ssl.SSLContext | None:
    """Return how a connection is secured, by the address's scheme and options."""
    if url.scheme != "amqps":
        return None
    options = url.query
    context = ssl.create_default_context(
        cafile=options.get("cafile"), capath=options.get("capath"), cadata=options.get("cadata")
    )
    if options.get("no_verify_ssl", "0").lower() in ("1", "true", "yes", "y"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "certfile" in options:
        context.load_cert_chain(options["certfile"], options.get("keyfile"))
    return context


async def consume(
    amqp_url: str, queue: str, prefetch: int, notify: Callable[[], None]
) -> Deliveries:
    """Connect, and begin to consume a queue.

    Raises:
        OSError, TimeoutError: there is no broker, or it refuses.
    """
    url = URL(amqp_url)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(LONGEST_ANSWER_S):
        _, opened = await loop.create_connection(
            lambda: Deliveries(notify),
            url.host or "localhost",
            url.port or PORTS.get(url.scheme, PORTS["amqp"]),
            ssl=tls_of(url),
        )
    try:
        await opened.consume(url, queue, prefetch)
    except (DeliveriesLostError, TimeoutError):
        await opened.close()
        raise
    return opened
