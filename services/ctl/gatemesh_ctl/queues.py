"""What the broker tells: how full the queues are, who reads them, and the dead letters."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import AMQPError, ChannelNotFoundEntity
from aiormq.exceptions import ChannelAccessRefused

from gatemesh_common.exchanges import DEAD
from gatemesh_common.topology import DEAD_LETTERS, WORK_QUEUES
from gatemesh_ctl.addresses import BROKER_VARIABLE, shown
from gatemesh_ctl.errors import CtlError, UnreachableError

DEADLINE_S = 10.0
TEXTED = ("Capture",)
"""Types of messages with words of prompts and answers."""
RENEW_AT = 5
"""Deliveries after which a letter is sent anew: brokers drop one that was delivered too often."""

T = TypeVar("T")


@dataclass(frozen=True)
class QueueState:
    """One queue at one moment."""

    name: str
    messages: int
    consumers: int


class Unseen(Enum):
    """Why there is no state of a queue."""

    ABSENT = auto()
    HIDDEN = auto()
    """RabbitMQ from 4.2.6 on shows a user only what he has a right to."""


@asynccontextmanager
async def broker_connection(amqp_url: str) -> AsyncIterator[AbstractConnection]:
    """Give a connection.

    Raises:
        UnreachableError: the broker does not answer, or refuses the login.
    """
    try:
        async with asyncio.timeout(DEADLINE_S):
            connection = await aio_pika.connect(amqp_url)
    except (AMQPError, OSError, TimeoutError, ValueError) as error:
        raise UnreachableError(
            f"the broker at {shown(amqp_url)} does not answer: {type(error).__name__}",
            f"check that it runs and that {BROKER_VARIABLE} is right, with its virtual host",
        ) from None
    async with connection:
        yield connection


@asynccontextmanager
async def broker_channel(amqp_url: str) -> AsyncIterator[AbstractChannel]:
    """Give a channel with confirms; raises as `broker_connection` does."""
    async with broker_connection(amqp_url) as connection:
        yield await connection.channel(on_return_raises=True)


async def queue_states(amqp_url: str) -> list[QueueState]:
    """Return the state of every work queue and of the dead letters; unseen ones are left out."""
    async with broker_channel(amqp_url) as channel:
        names = [queue.name for queue in WORK_QUEUES] + [DEAD_LETTERS]
        found = [await queue_state(channel, name) for name in names]
    return [state for state in found if isinstance(state, QueueState)]


async def queue_state(channel: AbstractChannel, name: str) -> QueueState | Unseen:
    """Return one queue's state, or why there is none."""
    try:
        declared = (await bounded(channel.declare_queue(name, passive=True))).declaration_result
    except (ChannelNotFoundEntity, ChannelAccessRefused) as error:
        # Asking for an absent queue closes the channel.
        await channel.reopen()
        return Unseen.ABSENT if isinstance(error, ChannelNotFoundEntity) else Unseen.HIDDEN
    messages, consumers = declared.message_count or 0, declared.consumer_count or 0
    return QueueState(name, messages, consumers)


async def peek_letters(amqp_url: str, limit: int) -> list[dict[str, Any]]:
    """Return the oldest dead letters and leave every one of them where it was."""
    async with broker_channel(amqp_url) as channel:
        try:
            queue = await bounded(channel.declare_queue(DEAD_LETTERS, passive=True))
        except ChannelNotFoundEntity:
            raise CtlError(
                f"the broker has no queue {DEAD_LETTERS}",
                "start a service once, it declares the queues",
            ) from None
        except ChannelAccessRefused:
            raise CtlError(
                f"this user may not read {DEAD_LETTERS}", "call as one who may: docs/security.md"
            ) from None
        held: list[AbstractIncomingMessage] = []
        while len(held) < limit:
            letter = await bounded(queue.get(fail=False))
            if letter is None:
                break
            held.append(letter)
        for letter in reversed(held):
            await give_back(channel, letter)
    return [describe(letter) for letter in held]


async def give_back(channel: AbstractChannel, letter: AbstractIncomingMessage) -> None:
    """Return a letter to its queue; one that was looked at often is replaced by a copy."""
    if deliveries(letter) < RENEW_AT:
        await letter.nack(requeue=True)
        return
    copy = aio_pika.Message(
        letter.body,
        headers={
            name: value
            for name, value in letter.headers.items()
            if name not in ("x-delivery-count", "x-acquired-count")
        },
        content_type=letter.content_type,
        message_id=letter.message_id,
        type=letter.type,
        app_id=letter.app_id,
        timestamp=letter.timestamp,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )
    # Confirmed before the original goes: a crash in between doubles a letter, and loses none.
    exchange = await channel.get_exchange(DEAD, ensure=False)
    await bounded(exchange.publish(copy, letter.routing_key or DEAD_LETTERS, mandatory=True))
    await letter.ack()


def deliveries(letter: AbstractIncomingMessage) -> int:
    """Return how often a letter was delivered before this time."""
    counts = [letter.headers.get(name) for name in ("x-delivery-count", "x-acquired-count")]
    return max((count for count in counts if isinstance(count, int)), default=0)


def describe(letter: AbstractIncomingMessage) -> dict[str, Any]:
    """Return what there is to know of a letter."""
    headers, body = letter.headers, readable(letter.body)
    return {
        "message_id": letter.message_id,
        "type": letter.type,
        "queue": headers.get("x-gatemesh-queue") or headers.get("x-first-death-queue"),
        "reason": headers.get("x-gatemesh-reason") or headers.get("x-first-death-reason"),
        "routing_key": headers.get("x-gatemesh-key") or letter.routing_key,
        "sent_by": letter.app_id,
        "timestamp": letter.timestamp,
        "body": without_texts(body) if letter.type in TEXTED else body,
    }


def without_texts(body: object) -> object:
    """Return a capture without what it tells of prompt and answer: that has readers of its own."""
    return {**body, "texts": None} if isinstance(body, dict) and body.get("texts") else body


def readable(body: bytes) -> object:
    """Return a body as JSON where it is, else as text."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


async def bounded(operation: Awaitable[T]) -> T:
    """Wait for the broker, but not for ever."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await operation
    except TimeoutError:
        raise UnreachableError(
            f"the broker did not answer in {DEADLINE_S:g} s", "try again, or look at its log"
        ) from None
