"""What a reader sees of a channel; a real broker is in the integration tests."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp import commands
from pamqp.header import ContentHeader

from gatemesh_health_manager.deliveries import Deliveries, Delivery


@dataclass
class FakeChannel:
    """Stands for the channel below aio-pika; keeps what it is told."""

    closing: "asyncio.Future[None]"
    on_consumer_cancel_callbacks: set[Callable[[object], None]] = field(default_factory=set)
    told: list[tuple[object, ...]] = field(default_factory=list)
    take: Any = None

    @property
    def is_closed(self) -> bool:
        """True once it has ended."""
        return self.closing.done()

    async def basic_qos(self, *, prefetch_count: int, timeout: float) -> None:
        """Keep it."""
        self.told.append(("qos", prefetch_count))

    async def basic_consume(
        self, queue: str, take: object, *, timeout: float
    ) -> commands.Basic.ConsumeOk:
        """Keep it."""
        self.take = take
        self.told.append(("consume", queue))
        return commands.Basic.ConsumeOk("tag-1")

    async def basic_ack(self, tag: int, *, multiple: bool, wait: bool) -> None:
        """Keep it."""
        self.told.append(("ack", tag, multiple))

    async def basic_reject(self, tag: int, *, requeue: bool) -> None:
        """Keep it."""
        self.told.append(("reject", tag, requeue))

    async def basic_cancel(self, tag: str, *, timeout: float) -> None:
        """Keep it."""
        self.told.append(("cancel", tag))


class Reading:
    """Deliveries over a channel that is fed by hand."""

    def __init__(self) -> None:
        self.ends = 0
        self.taken: list[Delivery] = []
        self.channel = FakeChannel(asyncio.get_running_loop().create_future())
        connection, channel = cast(AbstractConnection, None), cast(AbstractChannel, self.channel)
        self.source = Deliveries(connection, channel, self.taken.append, self.note)

    def note(self) -> None:
        """Count ends."""
        self.ends += 1

    async def take(self, *tags: int) -> None:
        """Have messages come."""
        for tag in tags:
            await self.channel.take(sent(tag, b""))

    @property
    def acknowledged(self) -> list[object]:
        """Tags up to which all was acknowledged."""
        return [told[1] for told in self.channel.told if told[0] == "ack"]


@pytest.fixture
async def reading() -> Reading:
    """One that consumes."""
    found = Reading()
    await found.source.consume("q", 9)
    return found


def sent(tag: int, body: bytes) -> DeliveredMessage:
    """Return one message as it comes from the channel."""
    properties = commands.Basic.Properties(message_id=f"m{tag}", headers={"cloudEvents:id": "x"})
    deliver = commands.Basic.Deliver("tag-1", tag, exchange="e", routing_key="k")
    header = ContentHeader(0, len(body), properties)
    return DeliveredMessage(delivery=deliver, header=header, body=body, channel=cast(Any, None))


async def test_messages_come_in_their_order(reading: Reading) -> None:
    """Each is more than its body for the dead letters."""
    for tag, body in ((1, b"one"), (2, b""), (2**40, b"three")):
        await reading.channel.take(sent(tag, body))
    found = [(message.tag, message.body) for message in reading.taken]
    assert found == [(1, b"one"), (2, b""), (2**40, b"three")]
    whole = reading.taken[0].unpacked()
    assert (whole.body, whole.message_id, whole.routing_key) == (b"one", "m1", "k")
    assert whole.headers == {"cloudEvents:id": "x"}
    assert reading.channel.told == [("qos", 9), ("consume", "q")]


async def test_nothing_is_acknowledged_before_what_came_earlier(reading: Reading) -> None:
    """What is settled out of turn waits; then all goes at once."""
    await reading.take(1, 2, 3, 4, 5)
    await reading.source.settle([3, 4])
    assert reading.acknowledged == []
    await reading.source.settle([1])
    assert reading.acknowledged == [1]
    await reading.source.settle([2])
    assert reading.channel.told[-1] == ("ack", 4, True)
    await reading.source.settle([5])
    assert reading.acknowledged == [1, 4, 5]


async def test_what_is_rejected_is_never_acknowledged(reading: Reading) -> None:
    """The broker closes the channel of whoever does; it is not requeued, and holds up nothing."""
    await reading.take(1, 2, 3)
    await reading.source.reject(2)
    await reading.source.reject(3)
    assert reading.channel.told[-2:] == [("reject", 2, False), ("reject", 3, False)]
    await reading.source.settle([2, 3])
    assert reading.acknowledged == []
    await reading.source.settle([1])
    await reading.take(4)
    await reading.source.settle([4])
    assert reading.acknowledged == [1, 4]


async def test_a_deleted_queue_is_told(reading: Reading) -> None:
    """The channel stays."""
    [hear] = reading.channel.on_consumer_cancel_callbacks
    hear(commands.Basic.Cancel("tag-1"))
    assert (reading.source.is_cancelled, reading.source.is_lost, reading.ends) == (True, False, 1)


async def test_whoever_cancels_gets_nothing_more(reading: Reading) -> None:
    """By the tag that the broker gave."""
    await reading.source.cancel()
    assert reading.source.is_cancelled
    assert reading.channel.told[-1] == ("cancel", "tag-1")


@pytest.mark.parametrize("fault", [None, ConnectionError("gone")], ids=["closed", "broken"])
async def test_an_end_is_told(reading: Reading, fault: Exception | None) -> None:
    """What was delivered and not acknowledged comes again."""
    end = reading.channel.closing
    end.set_exception(fault) if fault else end.set_result(None)
    await asyncio.sleep(0)
    assert reading.source.is_lost
    assert reading.ends == 1
