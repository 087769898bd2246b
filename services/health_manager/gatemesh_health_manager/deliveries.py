"""Messages of one queue in the order in which they come, without a task or an answer for each."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import aio_pika
from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel, DeliveredMessage

LONGEST_ANSWER_S = 10.0


class Delivery(NamedTuple):
    """One message."""

    tag: int
    body: bytes
    whole: DeliveredMessage

    def unpacked(self) -> aio_pika.IncomingMessage:
        """Return the message with all that it says; it cannot be acknowledged."""
        return aio_pika.IncomingMessage(self.whole, no_ack=True)


class Deliveries:
    """One consumer of one queue; `notify` is called whenever there is something new.

    aio-pika wraps each message and sends one acknowledgement each; a batch needs neither, so this
    reads from the channel below.
    """

    def __init__(
        self, connection: AbstractConnection, channel: AbstractChannel, notify: Callable[[], None]
    ) -> None:
        self.waiting: deque[Delivery] = deque()
        self.is_cancelled = False
        """True once the broker sends nothing more: the queue was deleted, or we asked."""
        self._connection = connection
        self._channel = channel
        self._notify = notify
        self._tag = ""

    @property
    def is_lost(self) -> bool:
        """True when the connection or the channel is closed; what was not acknowledged returns."""
        return bool(self._channel.is_closed)

    async def consume(self, queue: str, prefetch: int) -> None:
        """Begin to consume. Raises as aiormq does where the broker refuses it."""
        self._channel.closing.add_done_callback(self._hear_end)
        self._channel.on_consumer_cancel_callbacks.add(self._hear_cancel)
        await self._channel.basic_qos(prefetch_count=prefetch, timeout=LONGEST_ANSWER_S)
        begun = await self._channel.basic_consume(queue, self._take, timeout=LONGEST_ANSWER_S)
        self._tag = begun.consumer_tag or ""

    async def acknowledge(self, tag: int) -> None:
        """Acknowledge every message up to a tag."""
        await self._channel.basic_ack(tag, multiple=True, wait=False)

    async def reject(self, tag: int) -> None:
        """Have the broker move a message to the dead letters."""
        await self._channel.basic_reject(tag, requeue=False)

    async def cancel(self) -> None:
        """Have the broker send nothing more."""
        await self._channel.basic_cancel(self._tag, timeout=LONGEST_ANSWER_S)
        self.is_cancelled = True

    async def close(self) -> None:
        """Close the connection; what was not acknowledged is delivered again."""
        await self._connection.close()

    async def _take(self, message: DeliveredMessage) -> None:
        self.waiting.append(Delivery(message.delivery_tag or 0, message.body, message))
        self._notify()

    def _hear_cancel(self, _frame: object) -> None:
        self.is_cancelled = True
        self._notify()

    def _hear_end(self, end: "asyncio.Future[None]") -> None:
        if not end.cancelled():
            # Whoever follows is told by `is_lost`.
            end.exception()
        self._notify()


async def consume(
    amqp_url: str, queue: str, prefetch: int, notify: Callable[[], None]
) -> Deliveries:
    """Connect, and begin to consume a queue.

    Raises:
        OSError, TimeoutError, AMQPError: there is no broker, or it refuses.
    """
    connection = await aio_pika.connect(amqp_url, timeout=LONGEST_ANSWER_S)
    try:
        channel = await connection.channel(publisher_confirms=False)
        opened = Deliveries(connection, await channel.get_underlay_channel(), notify)
        await opened.consume(queue, prefetch)
    except BaseException:
        await connection.close()
        raise
    return opened
