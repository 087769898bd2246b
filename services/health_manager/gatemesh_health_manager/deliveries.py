"""Messages of one queue in the order in which they come, without a task or an answer for each."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
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
    """One consumer of one queue; `take` gets each message, `ended` is called when it is over.

    aio-pika wraps each message and sends one acknowledgement each; a batch needs neither, so this
    reads from the channel below.
    """

    def __init__(
        self,
        connection: AbstractConnection,
        channel: AbstractChannel,
        take: Callable[[Delivery], None],
        ended: Callable[[], None],
    ) -> None:
        self.is_cancelled = False
        """True once the broker sends nothing more: the queue was deleted, or we asked."""
        self._connection = connection
        self._channel = channel
        self._take = take
        self._ended = ended
        self._tag = ""
        self._open: deque[int] = deque()
        """Tags that are neither acknowledged nor known to be rejected, in their order."""
        self._settled: set[int] = set()
        self._rejected: set[int] = set()
        self._in_order = asyncio.Lock()
        """Of two lanes: an acknowledgement that a later one overtakes names an unknown tag."""

    @property
    def is_lost(self) -> bool:
        """True when the connection or the channel is closed; what was not acknowledged returns."""
        return bool(self._channel.is_closed)

    async def consume(self, queue: str, prefetch: int) -> None:
        """Begin to consume. Raises as aiormq does where the broker refuses it."""
        self._channel.closing.add_done_callback(self._hear_end)
        self._channel.on_consumer_cancel_callbacks.add(self._hear_cancel)
        await self._channel.basic_qos(prefetch_count=prefetch, timeout=LONGEST_ANSWER_S)
        begun = await self._channel.basic_consume(queue, self._receive, timeout=LONGEST_ANSWER_S)
        self._tag = begun.consumer_tag or ""

    async def settle(self, tags: Iterable[int]) -> None:
        """Acknowledge messages, each as soon as all before it are settled too."""
        self._settled.update(tags)
        async with self._in_order:
            upto = self._settle_first()
            if upto:
                await self._channel.basic_ack(upto, multiple=True, wait=False)

    def _settle_first(self) -> int:
        """Forget the first messages, as far as all are settled; return the last to acknowledge."""
        upto = 0
        while self._open and self._open[0] in self._settled:
            tag = self._open.popleft()
            self._settled.remove(tag)
            if tag in self._rejected:
                self._rejected.remove(tag)
            else:
                upto = tag
        return upto

    async def reject(self, tag: int) -> None:
        """Have the broker move a message to the dead letters; it is still to be settled."""
        # The broker closes the channel of whoever acknowledges what he has rejected.
        self._rejected.add(tag)
        await self._channel.basic_reject(tag, requeue=False)

    async def cancel(self) -> None:
        """Have the broker send nothing more."""
        await self._channel.basic_cancel(self._tag, timeout=LONGEST_ANSWER_S)
        self.is_cancelled = True
        self._ended()

    async def close(self) -> None:
        """Close the connection; what was not acknowledged is delivered again."""
        await self._connection.close()

    async def _receive(self, message: DeliveredMessage) -> None:
        tag = message.delivery_tag or 0
        self._open.append(tag)
        self._take(Delivery(tag, message.body, message))

    def _hear_cancel(self, _frame: object) -> None:
        self.is_cancelled = True
        self._ended()

    def _hear_end(self, end: "asyncio.Future[None]") -> None:
        if not end.cancelled():
            # Whoever follows is told by `is_lost`.
            end.exception()
        self._ended()


async def consume(
    amqp_url: str,
    queue: str,
    prefetch: int,
    take: Callable[[Delivery], None],
    ended: Callable[[], None],
) -> Deliveries:
    """Connect, and begin to consume a queue.

    Raises:
        OSError, TimeoutError, AMQPError: there is no broker, or it refuses.
    """
    connection = await aio_pika.connect(amqp_url, timeout=LONGEST_ANSWER_S)
    try:
        channel = await connection.channel(publisher_confirms=False)
        opened = Deliveries(connection, await channel.get_underlay_channel(), take, ended)
        await opened.consume(queue, prefetch)
    except BaseException:
        await connection.close()
        raise
    return opened
