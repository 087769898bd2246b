"""The topology as subscribers see it."""

from faststream.rabbit import QueueType

from gatemesh_common import broker, declaring, topology
from gatemesh_common.broker import WORK_QUEUES, broadcast_queue, topic, work_queue


def test_every_word_of_the_topology_has_its_old_place_too() -> None:
    """Services of others import from here."""
    for name in broker.__all__:
        own = getattr(broker, name)
        assert own is getattr(topology, name, getattr(declaring, name, own))
    assert {name for name in vars(topology) if name.isupper()} - set(broker.__all__) <= {
        *("ALERTS", "CONTROL", "DEAD", "EVENTS", "SHADOW"),
    }


def test_readers_do_not_declare_work_queues() -> None:
    """With least-privilege users only the topology step may."""
    queue = work_queue(WORK_QUEUES[0])
    assert (queue.declare, queue.durable) == (False, True)
    assert queue.arguments["x-queue-type"] == QueueType.QUORUM.value
    assert not topic("any").declare


def test_a_broadcast_queue_lives_with_its_reader() -> None:
    """And is bounded."""
    queue = broadcast_queue("agent-0.routing", "routing.v1.#")
    assert (queue.exclusive, queue.durable, queue.auto_delete) == (True, False, True)
    assert queue.arguments is not None
    assert queue.arguments["x-max-length"] == 10_000
