"""Declaring the topology at the broker."""

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractQueue

from gatemesh_common.exchanges import DEAD
from gatemesh_common.message import LANE_HEADER, PROOF_LANE
from gatemesh_common.topology import (
    DEAD_LETTER_ARGUMENTS,
    DEAD_LETTERS,
    EXCHANGE_KINDS,
    EXCHANGES,
    PROOFS,
    SHARDING,
    UNSHARDED,
    VERDICTS,
    WORK_QUEUES,
    WorkQueue,
    queue_arguments,
)


async def declare_topology(
    channel: AbstractChannel, extra_queues: tuple[WorkQueue, ...] = ()
) -> None:
    """Declare exchanges, dead letters and work queues; harmless when they are there already.

    Every service does this before anything else, so that none publishes into the void. A new
    consumer service passes its own queues as `extra_queues`. The way to the proofs is left to who
    reads them (`bind_proofs`): with a manager of an older release they would wait for nobody.
    """
    for name in EXCHANGES:
        await declare_exchange(channel, name)
    dead = await channel.declare_queue(DEAD_LETTERS, durable=True, arguments=DEAD_LETTER_ARGUMENTS)
    await dead.bind(DEAD, routing_key="#")
    for queue in (*WORK_QUEUES, *extra_queues):
        declared = await channel.declare_queue(
            queue.name, durable=True, arguments=queue_arguments(queue)
        )
        if queue is VERDICTS:
            await bind_verdicts(channel, declared)
        elif queue is not PROOFS:
            await declared.bind(queue.exchange, routing_key=queue.routing_key)


async def declare_exchange(channel: AbstractChannel, name: str) -> AbstractExchange:
    """Declare one of our exchanges; refused where one of another kind has its name."""
    known = EXCHANGE_KINDS[name]
    return await channel.declare_exchange(
        name, ExchangeType(known.kind), durable=True, arguments=dict(known.arguments)
    )


async def bind_verdicts(channel: AbstractChannel, queue: AbstractQueue) -> None:
    """Lead verdicts to their queue past the place where managers bind shards."""
    rest = await declare_exchange(channel, UNSHARDED)
    sharding = await declare_exchange(channel, SHARDING)
    await queue.bind(rest, routing_key=queue.name)
    await sharding.bind(VERDICTS.exchange, routing_key=VERDICTS.routing_key)
    # The way of the releases before would bring sharded verdicts here a second time.
    await queue.unbind(VERDICTS.exchange, routing_key=VERDICTS.routing_key)


async def bind_proofs(channel: AbstractChannel) -> None:
    """Lead proofs to the queue of their own; until then they go where other verdicts go."""
    queue = await channel.get_queue(PROOFS.name, ensure=False)
    await queue.bind(SHARDING, "", arguments={"x-match": "all", LANE_HEADER: PROOF_LANE})
