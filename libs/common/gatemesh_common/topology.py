"""The broker's topology as data: exchanges, queues, dead letters, and their arguments.

Whoever only names a queue needs none of the libraries that speak to the broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gatemesh_common.exchanges import ALERTS, CONTROL, DEAD, EVENTS, SHADOW

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
PROOFS = WorkQueue("health_manager.proofs", ALERTS, "#")
"""Of verdicts the proofs, by their lane. Managers that read it bind it, nobody else does."""
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


@dataclass(frozen=True)
class ExchangeKind:
    """What an exchange is declared with; all of ours are durable."""

    kind: Literal["topic", "fanout", "headers"] = "topic"
    arguments: Mapping[str, Any] = field(default_factory=dict)


EXCHANGE_KINDS: Mapping[str, ExchangeKind] = {
    **dict.fromkeys(EXCHANGES, ExchangeKind()),
    UNSHARDED: ExchangeKind("fanout"),
    SHARDING: ExchangeKind("headers", {"alternate-exchange": UNSHARDED}),
}
"""Every exchange by name."""

WORK_QUEUES = (
    VERDICTS,
    PROOFS,
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


def shard_queue(shard: int) -> WorkQueue:
    """Return the queue of one shard."""
    return WorkQueue(f"{VERDICTS.name}.{shard}", SHARDING, "", one_reader=True)


def shard_of(bucket: int, shards: int) -> int:
    """Return the shard that a bucket's verdicts belong to."""
    return bucket % shards
