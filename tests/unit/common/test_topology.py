"""The topology as data: no queue without a dead letter, a limit and a reader's exchange."""

import pytest

from gatemesh_common.exchanges import DEAD
from gatemesh_common.message import BUCKETS
from gatemesh_common.messages import MESSAGES
from gatemesh_common.topology import (
    DELIVERY_LIMIT,
    EXCHANGES,
    MOST_SHARDS,
    PROOFS,
    SAMPLES,
    VERDICTS,
    WORK_QUEUES,
    WorkQueue,
    queue_arguments,
    shard_of,
    shard_queue,
)


@pytest.mark.parametrize("queue", WORK_QUEUES, ids=lambda it: it.name)
def test_a_work_queue_keeps_what_nobody_can_take(queue: WorkQueue) -> None:
    """Quorum, delivery limit, dead letters under its own name."""
    kept = {
        "x-queue-type": "quorum",
        "x-delivery-limit": DELIVERY_LIMIT,
        "x-dead-letter-exchange": DEAD,
        "x-dead-letter-routing-key": queue.name,
    }
    assert kept.items() <= queue_arguments(queue).items()
    assert queue.exchange in EXCHANGES


def test_queue_names_are_distinct() -> None:
    """One kind of reader each."""
    assert len({queue.name for queue in WORK_QUEUES}) == len(WORK_QUEUES)


def test_every_mandatory_message_has_a_queue() -> None:
    """Or its publisher would be told that nobody reads it."""
    bound = {(queue.exchange, queue.routing_key.removesuffix(".#")) for queue in WORK_QUEUES}
    for kind in MESSAGES:
        if kind.mandatory:
            assert (kind.exchange, kind.routing_key) in bound or (kind.exchange, "#") in bound


def test_a_bounded_queue_refuses_rather_than_forgets() -> None:
    """Samples carry prompts: a pile of them must not grow while no shadow runs."""
    bound = {"x-max-length": 2000, "x-overflow": "reject-publish"}
    assert bound.items() <= queue_arguments(SAMPLES).items()
    assert "x-max-length" not in queue_arguments(VERDICTS)


def test_shards_are_no_queues_of_every_service() -> None:
    """Only managers know how many there are; to the others there is the queue of all verdicts."""
    names = {queue.name for queue in WORK_QUEUES}
    assert VERDICTS.name in names
    assert not names & {shard_queue(shard).name for shard in range(MOST_SHARDS)}
    assert not any(queue.one_reader for queue in WORK_QUEUES)


@pytest.mark.parametrize("shards", range(1, MOST_SHARDS + 1))
def test_every_bucket_has_a_shard(shards: int) -> None:
    """And every shard has buckets."""
    assert {shard_of(bucket, shards) for bucket in range(BUCKETS)} == set(range(shards))


def test_proofs_have_a_queue_of_every_service() -> None:
    """Several managers read it side by side, whatever the shards."""
    assert PROOFS in WORK_QUEUES
    assert not PROOFS.one_reader
    assert "x-max-length" not in queue_arguments(PROOFS)
