"""What is declared at the broker, in which order."""

from typing import Any, Self, cast

from aio_pika.abc import AbstractChannel

from gatemesh_common.declaring import bind_proofs, declare_topology
from gatemesh_common.exchanges import DEAD
from gatemesh_common.topology import (
    DEAD_LETTERS,
    EXCHANGES,
    PROOFS,
    SHARDING,
    UNSHARDED,
    VERDICTS,
    WORK_QUEUES,
    WorkQueue,
    queue_arguments,
)


class Declared:
    """A channel, and each queue and exchange on it, that keeps what it was asked for."""

    def __init__(self, asked: list[tuple[str, ...]], name: str = "") -> None:
        self.asked = asked
        self.name = name
        self.arguments: dict[str, Any] = {}

    async def declare_exchange(self, name: str, kind: str, **facts: Any) -> Self:
        """Keep the exchange."""
        self.asked.append(("exchange", name, str(kind.value if hasattr(kind, "value") else kind)))
        return type(self)(self.asked, name)

    async def declare_queue(self, name: str, *, durable: bool, arguments: dict[str, Any]) -> Self:
        """Keep the queue."""
        assert durable
        self.arguments[name] = arguments
        self.asked.append(("queue", name))
        return type(self)(self.asked, name)

    async def get_queue(self, name: str, *, ensure: bool) -> Self:
        """Return a queue that is there already."""
        assert not ensure
        return type(self)(self.asked, name)

    async def bind(
        self, source: object, routing_key: str = "", arguments: dict[str, str] | None = None
    ) -> None:
        """Keep the binding, and what it compares."""
        if arguments:
            routing_key = str(sorted(arguments.items()))
        self.asked.append(("bind", self.name, getattr(source, "name", str(source)), routing_key))

    async def unbind(self, source: str, routing_key: str) -> None:
        """Keep that it goes."""
        self.asked.append(("unbind", self.name, source, routing_key))


async def declared(*extra: WorkQueue) -> Declared:
    """Return a channel on which everything was declared."""
    channel = Declared([])
    await declare_topology(cast(AbstractChannel, channel), extra)
    return channel


async def test_dead_letters_come_before_the_queues_that_need_them() -> None:
    """A queue without its dead-letter exchange would lose what it drops."""
    channel = await declared()
    kinds = [words[:2] for words in channel.asked]
    first_work = kinds.index(("queue", WORK_QUEUES[0].name))
    for needed in (("exchange", DEAD), ("queue", DEAD_LETTERS), ("bind", DEAD_LETTERS)):
        assert kinds.index(needed) < first_work
    assert {words[1] for words in channel.asked if words[0] == "exchange"} == {
        *EXCHANGES,
        SHARDING,
        UNSHARDED,
    }


async def test_every_queue_is_bound_to_its_exchange_with_its_arguments() -> None:
    """A new consumer's own queue too."""
    own = WorkQueue("own.work", EXCHANGES[0], "verdict.v1.#")
    channel = await declared(own)
    for queue in (*WORK_QUEUES, own):
        assert channel.arguments[queue.name] == queue_arguments(queue)
        if queue not in (VERDICTS, PROOFS):
            assert ("bind", queue.name, queue.exchange, queue.routing_key) in channel.asked


async def test_verdicts_come_through_the_place_where_shards_are_bound() -> None:
    """And no longer straight from the exchange: they would come twice."""
    channel = await declared()
    assert ("bind", VERDICTS.name, UNSHARDED, VERDICTS.name) in channel.asked
    assert ("bind", SHARDING, VERDICTS.exchange, VERDICTS.routing_key) in channel.asked
    assert ("unbind", VERDICTS.name, VERDICTS.exchange, VERDICTS.routing_key) in channel.asked


async def test_proofs_are_bound_by_who_reads_them() -> None:
    """Else they would wait at the side of a manager that does not know their queue."""
    channel = await declared()
    assert ("queue", PROOFS.name) in channel.asked
    assert not [words for words in channel.asked if words[:2] == ("bind", PROOFS.name)]
    await bind_proofs(cast(AbstractChannel, channel))
    compared = str([("gatemesh-lane", "proofs"), ("x-match", "all")])
    assert channel.asked[-1] == ("bind", PROOFS.name, SHARDING, compared)
