"""The broker's topology: exchanges, queues, dead letters, and the arguments all of them share."""

from dataclasses import dataclass
from typing import Any

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractQueue
from faststream.rabbit import ExchangeType as FastExchangeType
from faststream.rabbit import QueueType, RabbitExchange, RabbitQueue

from gatemesh_common.messages import ALERTS, CONTROL, DEAD, EVENTS, SHADOW

DELIVERY_LIMIT = 10
"""Deliveries of one message before the broker dead-letters it: a crash loop must end."""

DEAD_LETTERS = "gatemesh.dead.letters"
DEAD_LETTER_ARGUMENTS: dict[str, Any] = {
    "x-queue-type": "quorum",
    # Looking at a dead letter is a delivery, and must never be what deletes it.
    "x-delivery-limit": 1_000_000,
}
EXCHANGES = (ALERTS, SHADOW, CONTROL, EVENTS, DEAD)


@dataclass(frozen=True)
class WorkQueue:
    """A durable queue with one kind of reader; what the reader rejects becomes a dead letter."""

    name: str
    exchange: str
    routing_key: str
    most_messages: int | None = None
    """Messages that it holds; the broker refuses more. None leaves it open."""
    one_reader: bool = False
    """True where the broker serves one consumer at a time, so that order holds."""


VERDICTS = WorkQueue("health_manager.verdicts", ALERTS, "#")
REQUESTS = WorkQueue("health_manager.requests", CONTROL, "request.v1.#")
TRIALS = WorkQueue("health_manager.trials", CONTROL, "trial.v1.#")
REPORTS = WorkQueue("health_manager.reports", EVENTS, "report.v1.#")
STEPS = WorkQueue("health_manager.steps", EVENTS, "step.v1.#")
OBSERVATIONS = WorkQueue("health_manager.observations", EVENTS, "observed.v1.#")
TELEMETRY = WorkQueue("health_manager.telemetry", EVENTS, "telemetry.v1.#")
REJECTED = WorkQueue("health_manager.rejected", EVENTS, "rejected.v1.#")
CAPTURES = WorkQueue("health_manager.captures", EVENTS, "capture.v1.#", most_messages=2000)
SAMPLES = WorkQueue("shadow.samples", SHADOW, "sample.v1.#", most_messages=2000)
COMMANDS = WorkQueue("executor.commands", CONTROL, "command.v1.#")

SHARDING = "gatemesh.verdicts"
"""Between the verdicts' exchange and their queues: by bucket to a shard's queue."""
UNSHARDED = "gatemesh.verdicts.rest"
"""What no bucket leads anywhere: all of it while there are no shards, else what names none."""
MOST_SHARDS = 16

WORK_QUEUES = (
    VERDICTS,
    REQUESTS,
    TRIALS,
    REPORTS,
    STEPS,
    OBSERVATIONS,
    TELEMETRY,
    REJECTED,
    CAPTURES,
    SAMPLES,
    COMMANDS,
)


def queue_arguments(queue: WorkQueue) -> dict[str, Any]:
    """Return the arguments of a work queue; the same everywhere, or redeclaring fails."""
    bound: dict[str, Any] = {"x-single-active-consumer": True} if queue.one_reader else {}
    if queue.most_messages is not None:
        bound |= {"x-max-length": queue.most_messages, "x-overflow": "reject-publish"}
    return {
        "x-queue-type": "quorum",
        "x-delivery-limit": DELIVERY_LIMIT,
        "x-dead-letter-exchange": DEAD,
        "x-dead-letter-routing-key": queue.name,
        **bound,
    }


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


async def declare_topology(
    channel: AbstractChannel, extra_queues: tuple[WorkQueue, ...] = ()
) -> None:
    """Declare exchanges, dead letters and work queues; harmless when they are there already.

    Every service does this before anything else, so that none publishes into the void. A new
    consumer service passes its own queues as `extra_queues`.
    """
    for name in EXCHANGES:
        await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)
    dead = await channel.declare_queue(DEAD_LETTERS, durable=True, arguments=DEAD_LETTER_ARGUMENTS)
    await dead.bind(DEAD, routing_key="#")
    for queue in (*WORK_QUEUES, *extra_queues):
        declared = await channel.declare_queue(
            queue.name, durable=True, arguments=queue_arguments(queue)
        )
        if queue is VERDICTS:
            await bind_verdicts(channel, declared)
        else:
            await declared.bind(queue.exchange, routing_key=queue.routing_key)


async def bind_verdicts(channel: AbstractChannel, queue: AbstractQueue) -> None:
    """Lead verdicts to their queue past the place where managers bind shards."""
    rest = await channel.declare_exchange(UNSHARDED, ExchangeType.FANOUT, durable=True)
    sharding = await channel.declare_exchange(
        SHARDING, ExchangeType.HEADERS, durable=True, arguments={"alternate-exchange": UNSHARDED}
    )
    await queue.bind(rest)
    await sharding.bind(VERDICTS.exchange, routing_key=VERDICTS.routing_key)
    # The way of the releases before would bring sharded verdicts here a second time.
    await queue.unbind(VERDICTS.exchange, routing_key=VERDICTS.routing_key)


def shard_queue(shard: int) -> WorkQueue:
    """Return the queue of one shard."""
    return WorkQueue(f"{VERDICTS.name}.{shard}", SHARDING, "", one_reader=True)


def shard_of(bucket: int, shards: int) -> int:
    """Return the shard that a bucket's verdicts belong to."""
    return bucket % shards
