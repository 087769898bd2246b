"""Receiving: brokers for subscribers, dead letters with a reason, a watch over consumers."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime
from json import JSONDecodeError
from types import TracebackType
from typing import Any

import aio_pika
from faststream import BaseMiddleware, ContextRepo
from faststream.rabbit import Channel, RabbitBroker
from faststream.rabbit.subscriber.usecase import RabbitSubscriber
from pydantic import ValidationError

from gatemesh_common.captures import Capture
from gatemesh_common.declaring import declare_topology
from gatemesh_common.errors import BrokerUnavailableError, GatemeshError
from gatemesh_common.exchanges import DEAD, SHADOW
from gatemesh_common.invalid import words_of
from gatemesh_common.message import BUCKET_HEADER, LANE_HEADER
from gatemesh_common.metrics import DEAD_LETTERED, QUEUE_AGE_SECONDS
from gatemesh_common.publisher import Publisher, whole_connection
from gatemesh_common.retrying import retry_passing_faults
from gatemesh_common.topology import WorkQueue

# Services that receive retry as well; those that only send take it from `retrying`.
__all__ = [
    "BROKER_FAULTS",
    "bury",
    "consumer_broker",
    "dead_letter_middleware",
    "has_no_consumer",
    "mend_topology",
    "reason_of",
    "retry_passing_faults",
    "watch_consumers",
]

log = logging.getLogger(__name__)

KEPT_HEADERS = ("cloudEvents", "trace", "x-signature", "x-key-id", BUCKET_HEADER, LANE_HEADER)
"""Beginnings of the headers that a dead letter keeps: published again, it is proven and placed."""
TIME_HEADER = "cloudEvents:time"
STOP_GRACE_S = 15.0
LONGEST_DECLARING_S = 10.0
LONGEST_ASKING_S = 5.0
BROKER_FAULTS = (
    BrokerUnavailableError,
    aio_pika.exceptions.AMQPError,
    OSError,
    RuntimeError,
    TimeoutError,
)


def consumer_broker(
    amqp_url: str,
    app_id: str,
    publisher: Publisher,
    prefetch: int = 100,
    grace_s: float = STOP_GRACE_S,
) -> RabbitBroker:
    """Return a broker for subscribers only; poison goes to the dead letters, with a reason.

    Messages that are not handled within `grace_s` of its end go back to their queue.
    """
    return RabbitBroker(
        amqp_url,
        app_id=app_id,
        default_channel=Channel(prefetch_count=prefetch, on_return_raises=True),
        middlewares=[age_middleware, dead_letter_middleware(publisher)],
        reconnect_interval=1.0,
        graceful_timeout=grace_s,
        logger=None,
    )


def reason_of(error: BaseException) -> str:
    """Name why a message cannot be handled; names fields, never repeats their values."""
    if isinstance(error, ValidationError):
        return words_of(error)[:1000]
    if isinstance(error, GatemeshError):
        return str(error)[:1000]
    if isinstance(error, JSONDecodeError):
        return f"body: no valid JSON, {error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"body: no valid {error.encoding}"
    return type(error).__name__


def dead_letter_middleware(
    publisher: Publisher,
) -> Callable[..., BaseMiddleware[Any, Any]]:
    """Return a middleware that moves what no handler can take to the dead letters, once."""

    class DeadLetterMiddleware(BaseMiddleware[Any, Any]):
        """Copies a failed message to the dead letters with its reason; then it is acknowledged."""

        async def __aexit__(
            self,
            exc_type: type[BaseException] | None = None,
            exc_val: BaseException | None = None,
            exc_tb: TracebackType | None = None,
        ) -> bool | None:
            if not isinstance(exc_val, Exception) or self.msg is None:
                return False
            return await bury(publisher, self.msg, queue_of(self.context), exc_val)

    def build(msg: Any | None = None, /, *, context: ContextRepo) -> BaseMiddleware[Any, Any]:
        return DeadLetterMiddleware(msg, context=context)

    return build


def queue_of(context: ContextRepo) -> str:
    """Return the queue that a message came by; of one process's own, what they are all called."""
    handler = context.get("handler_")
    if not isinstance(handler, RabbitSubscriber):
        return "unknown"
    name: str = handler.queue.name
    # Each start has another ending, and would be a series of its own.
    return name.rpartition(".")[0] if handler.queue.exclusive else name


class AgeMiddleware(BaseMiddleware[Any, Any]):
    """Notes how old each message is when its handler takes it."""

    async def on_receive(self) -> None:
        """Note the age of one that says when it was sent."""
        if self.msg is not None:
            note_age(queue_of(self.context), self.msg.headers.get(TIME_HEADER), time.time())
        return await super().on_receive()


def age_middleware(msg: Any | None = None, /, *, context: ContextRepo) -> AgeMiddleware:
    """Build the middleware of one message."""
    return AgeMiddleware(msg, context=context)


def note_age(queue: str, sent: object, now_s: float) -> None:
    """Note the age of a message by its header; one by hand has none, and counts for nothing."""
    try:
        sent_s = datetime.fromisoformat(str(sent)).timestamp()
    except ValueError:
        return
    QUEUE_AGE_SECONDS.labels(queue).observe(max(now_s - sent_s, 0.0))


def body_kept(message: aio_pika.abc.AbstractIncomingMessage) -> bytes:
    """Return what the dead letters keep of a message's body: nothing where it may hold text.

    Samples carry prompts and answers, and so may captures; others may read the dead letters.
    """
    is_capture = (message.routing_key or "").startswith(f"{Capture.routing_key}.")
    return b"" if message.exchange == SHADOW or is_capture else message.body


async def bury(
    publisher: Publisher,
    message: aio_pika.abc.AbstractIncomingMessage,
    queue: str,
    error: Exception,
) -> bool:
    """Copy a message to the dead letters; True when it is there and may be acknowledged."""
    reason = reason_of(error)
    log.error(
        "message_dead_lettered",
        extra={"queue": queue, "message_id": message.message_id, "reason": reason},
    )
    copy = aio_pika.Message(
        body_kept(message),
        content_type=message.content_type,
        message_id=message.message_id,
        type=message.type,
        app_id=message.app_id,
        timestamp=message.timestamp,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        headers={
            **{k: v for k, v in message.headers.items() if k.startswith(KEPT_HEADERS)},
            "x-gatemesh-reason": reason,
            "x-gatemesh-queue": queue,
            "x-gatemesh-key": message.routing_key or "",
        },
    )
    try:
        await publisher.publish_raw(copy, DEAD, queue, mandatory=True)
    except GatemeshError:
        # Rejected instead: the broker dead-letters it, without our reason.
        return False
    DEAD_LETTERED.labels(queue=queue).inc()
    return True


async def watch_consumers(
    publisher: Publisher, queues: tuple[WorkQueue, ...], *, every_s: float = 5.0
) -> None:
    """Return when one of the queues has no consumer at two looks in a row.

    A closed channel comes back by itself, but a consumer that the broker cancels, since its queue
    was deleted, does not, and raises nowhere; the caller ends the process, which its supervisor
    starts anew. What else of the topology was deleted meanwhile is declared again.
    """
    for queue in queues:
        # An alert on a rise needs the zero before it.
        DEAD_LETTERED.labels(queue=queue.name)
    missed: set[str] = set()
    while True:
        await asyncio.sleep(every_s)
        missing = {queue.name for queue in queues if await has_no_consumer(publisher, queue)}
        # A broker that was started again has no consumers until they have connected again.
        if lost := missing & missed:
            log.critical("consumer_lost", extra={"queue": ", ".join(sorted(lost))})
            return
        missed = missing
        await mend_topology(publisher)


async def mend_topology(publisher: Publisher) -> None:
    """Declare again an exchange, a binding or the dead letters; a broker that is away waits.

    Whoever may not leaves it to who may.
    """
    if not publisher.may_declare:
        return
    try:
        async with whole_connection(), asyncio.timeout(LONGEST_DECLARING_S):
            await declare_topology(await publisher.channel())
    except BROKER_FAULTS as error:
        log.warning("topology_not_mended", extra={"error": type(error).__name__})


async def has_no_consumer(publisher: Publisher, queue: WorkQueue) -> bool:
    """Return True only when the broker answers and says that nobody reads the queue."""
    try:
        async with whole_connection(), asyncio.timeout(LONGEST_ASKING_S):
            channel = await publisher.channel()
            declared = await channel.declare_queue(queue.name, passive=True)
    except aio_pika.exceptions.ChannelNotFoundEntity:
        return True
    except BROKER_FAULTS:
        return False
    return declared.declaration_result.consumer_count == 0
