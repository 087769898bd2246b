"""Meeting at the topology: whoever may declares it, everybody else sees that it is there."""

import logging
from collections.abc import Awaitable, Callable

from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelNotFoundEntity
from aiormq.exceptions import ChannelAccessRefused

from gatemesh_common.broker import (
    DEAD_LETTERS,
    EXCHANGES,
    WORK_QUEUES,
    WorkQueue,
    declare_topology,
    queue_arguments,
)
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.publisher import Publisher

log = logging.getLogger(__name__)


async def settle_topology(publisher: Publisher, own_queues: tuple[WorkQueue, ...] = ()) -> None:
    """Declare the topology, or where that is refused, see that it is there and add own queues.

    Raises:
        BrokerUnavailableError: it is not there yet, and this user may not declare it.
    """
    if publisher.may_declare:
        try:
            async with publisher.fresh_channel() as channel:
                await declare_topology(channel, own_queues)
        except ChannelAccessRefused:
            publisher.may_declare = False
            log.info("topology_left_to_others")
        else:
            return
    async with publisher.fresh_channel() as channel:
        await look_for_topology(channel, publisher.hidden)
        for queue in own_queues:
            await declare_own(channel, queue)


async def look_for_topology(channel: AbstractChannel, hidden: set[str]) -> None:
    """See that every exchange and queue is there that the broker shows; add the others to `hidden`.

    Raises:
        BrokerUnavailableError: one is not; names it and who declares it.
    """
    for name in EXCHANGES:
        await look_for(channel, name, channel.declare_exchange, hidden)
    for name in (DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES)):
        await look_for(channel, name, channel.declare_queue, hidden)


async def look_for(
    channel: AbstractChannel,
    name: str,
    declare: Callable[..., Awaitable[object]],
    hidden: set[str],
) -> None:
    """See that something is there; raises as `look_for_topology` does."""
    if name in hidden:
        return
    try:
        await declare(name, passive=True)
    except ChannelNotFoundEntity as error:
        raise BrokerUnavailableError(
            f"{name} is not there yet: start the health manager, which declares it, or import "
            "the broker's definitions"
        ) from error
    except ChannelAccessRefused:
        # RabbitMQ from 4.2.6 on shows nobody what he has no right to: it is none of ours.
        hidden.add(name)
        await channel.reopen()


async def declare_own(channel: AbstractChannel, queue: WorkQueue) -> None:
    """Declare a queue of this service's own."""
    declared = await channel.declare_queue(
        queue.name, durable=True, arguments=queue_arguments(queue)
    )
    await declared.bind(queue.exchange, routing_key=queue.routing_key)
