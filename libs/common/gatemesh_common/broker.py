"""The topology as FastStream subscribes to it, and all other words of it under one name."""

from faststream.rabbit import ExchangeType as FastExchangeType
from faststream.rabbit import QueueType, RabbitExchange, RabbitQueue

from gatemesh_common.declaring import bind_proofs, bind_verdicts, declare_topology
from gatemesh_common.topology import (
    CAPTURES,
    COMMANDS,
    DEAD_LETTER_ARGUMENTS,
    DEAD_LETTERS,
    DELIVERY_LIMIT,
    EXCHANGE_KINDS,
    EXCHANGES,
    MOST_SHARDS,
    OBSERVATIONS,
    PROOFS,
    REJECTED,
    REPORTS,
    REQUESTS,
    SAMPLES,
    SHARDING,
    STEPS,
    TELEMETRY,
    TRIALS,
    UNSHARDED,
    VERDICTS,
    WORK_QUEUES,
    ExchangeKind,
    WorkQueue,
    queue_arguments,
    shard_of,
    shard_queue,
)

# Whoever subscribes needs the queues too: they are handed on from here. Others take them from
# `topology` and `declaring`, and start without FastStream.
__all__ = [
    "CAPTURES",
    "COMMANDS",
    "DEAD_LETTERS",
    "DEAD_LETTER_ARGUMENTS",
    "DELIVERY_LIMIT",
    "EXCHANGES",
    "EXCHANGE_KINDS",
    "MOST_SHARDS",
    "OBSERVATIONS",
    "PROOFS",
    "REJECTED",
    "REPORTS",
    "REQUESTS",
    "SAMPLES",
    "SHARDING",
    "STEPS",
    "TELEMETRY",
    "TRIALS",
    "UNSHARDED",
    "VERDICTS",
    "WORK_QUEUES",
    "ExchangeKind",
    "WorkQueue",
    "bind_proofs",
    "bind_verdicts",
    "broadcast_queue",
    "declare_topology",
    "queue_arguments",
    "shard_of",
    "shard_queue",
    "topic",
    "work_queue",
]


def work_queue(queue: WorkQueue) -> RabbitQueue:
    """Return the FastStream form of a queue that `declare_topology` has declared."""
    return RabbitQueue(
        queue.name,
        queue_type=QueueType.QUORUM,
        durable=True,
        routing_key=queue.routing_key,
        declare=False,
    )


def broadcast_queue(name: str, routing_key: str) -> RabbitQueue:
    """Return a queue of one process that wants its own copy of each event while it lives.

    Nothing is lost with it: what travels this way is repeated by its publisher.
    """
    return RabbitQueue(
        name,
        exclusive=True,
        durable=False,
        auto_delete=True,
        routing_key=routing_key,
        arguments={"x-max-length": 10_000},
    )


def topic(name: str) -> RabbitExchange:
    """Return the FastStream form of an exchange that `declare_topology` has declared."""
    return RabbitExchange(name, type=FastExchangeType.TOPIC, durable=True, declare=False)
