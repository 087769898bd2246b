"""Reads one kind of broadcast for as long as the connection holds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import AMQPError

from gatemesh_common.messages import EVENTS
from gatemesh_common.publisher import whole_connection

log = logging.getLogger(__name__)

CONNECT_S = 10.0
RECONNECT_S = 2.0


async def follow_for_ever(
    amqp_url: str, routing_key: str, silence_s: float, receive: Callable[[bytes], Awaitable[None]]
) -> None:
    """Hand on each broadcast until cancelled; a broker that is away is waited for."""
    while True:
        try:
            async with whole_connection():
                await follow(amqp_url, routing_key, silence_s, receive)
        except (AMQPError, OSError, RuntimeError, TimeoutError) as error:
            facts = {"key": routing_key, "error": type(error).__name__}
            log.info("broadcast_away", extra=facts)
        await asyncio.sleep(RECONNECT_S)


async def follow(
    amqp_url: str, routing_key: str, silence_s: float, receive: Callable[[bytes], Awaitable[None]]
) -> None:
    """Hand on each broadcast; returns when the channel closes.

    Raises:
        TimeoutError: whoever repeats it was silent for too long, so the queue must be made anew.
        AMQPError, OSError, RuntimeError: the broker is away.
    """
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    connection = await aio_pika.connect(amqp_url, timeout=CONNECT_S)
    async with connection:
        channel = await connection.channel()
        channel.close_callbacks.add(lambda *_: arrived.put_nowait(None))
        # A fresh name each time: the broker may still hold the last one for a dead connection.
        queue = await channel.declare_queue(exclusive=True, auto_delete=True)
        await queue.bind(EVENTS, routing_key)

        async def on_message(message: AbstractIncomingMessage) -> None:
            arrived.put_nowait(message.body)

        await queue.consume(on_message, no_ack=True)
        await receive_all(arrived, silence_s, receive)


async def receive_all(
    arrived: "asyncio.Queue[bytes | None]",
    silence_s: float,
    receive: Callable[[bytes], Awaitable[None]],
) -> None:
    """Hand on what arrives until the channel closes, or nothing comes for too long."""
    while True:
        async with asyncio.timeout(silence_s):
            body = await arrived.get()
        if body is None:
            return
        await receive(body)
