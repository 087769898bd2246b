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

from gatemesh_health_manager.deliveries import Deliveries


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
        self.news = 0
        self.channel = FakeChannel(asyncio.get_running_loop().create_future())
        connection = cast(AbstractConnection, None)
        self.source = Deliveries(connection, cast(AbstractChannel, self.channel), self.note)

    def note(self) -> None:
        """Count news."""
        self.news += 1


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


async def test_messages_wait_in_their_order(reading: Reading) -> None:
    """Each is told, and is more than its body for the dead letters."""
    for tag, body in ((1, b"one"), (2, b""), (2**40, b"three")):
        await reading.channel.take(sent(tag, body))
    found = [(message.tag, message.body) for message in reading.source.waiting]
    assert found == [(1, b"one"), (2, b""), (2**40, b"three")]
    assert reading.news == 3
    whole = reading.source.waiting[0].unpacked()
    assert (whole.body, whole.message_id, whole.routing_key) == (b"one", "m1", "k")
    assert whole.headers == {"cloudEvents:id": "x"}
    assert reading.channel.told == [("qos", 9), ("consume", "q")]


async def test_many_are_acknowledged_at_once_and_one_is_rejected(reading: Reading) -> None:
    """Rejected is not requeued."""
    await reading.source.reject(3)
    await reading.source.acknowledge(7)
    assert reading.channel.told[-2:] == [("reject", 3, False), ("ack", 7, True)]


async def test_a_deleted_queue_is_told(reading: Reading) -> None:
    """The channel stays."""
    [hear] = reading.channel.on_consumer_cancel_callbacks
    hear(commands.Basic.Cancel("tag-1"))
    assert (reading.source.is_cancelled, reading.source.is_lost, reading.news) == (True, False, 1)


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
    assert reading.news == 1
