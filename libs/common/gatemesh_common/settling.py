"""Meeting at the topology: whoever may declares it, everybody else sees that it is there."""

import logging

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
        await look_for_topology(channel)
        for queue in own_queues:
            await declare_own(channel, queue)


async def look_for_topology(channel: AbstractChannel) -> None:
    """See that every exchange and queue is there; needs no rights.

    Raises:
        BrokerUnavailableError: one is not; names it and who declares it.
    """
    try:
        for name in EXCHANGES:
            await channel.declare_exchange(name, passive=True)
        for name in (DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES)):
            await channel.declare_queue(name, passive=True)
    except ChannelNotFoundEntity as error:
        raise BrokerUnavailableError(
            f"{name} is not there yet: start the health manager, which declares it, or import "
            "the broker's definitions"
        ) from error


async def declare_own(channel: AbstractChannel, queue: WorkQueue) -> None:
    """Declare a queue of this service's own."""
    declared = await channel.declare_queue(
        queue.name, durable=True, arguments=queue_arguments(queue)
    )
    await declared.bind(queue.exchange, routing_key=queue.routing_key)
