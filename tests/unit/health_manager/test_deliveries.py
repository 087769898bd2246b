"""What a reader sees of a channel; a real broker is in the integration tests."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp import commands, frame
from pamqp.base import Frame

from gatemesh_health_manager.deliveries import Deliveries, consume, pass_by

from .test_frames import frames_of, sent


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


async def test_messages_wait_in_their_order(reading: Reading) -> None:
    """Those that came together are told once."""
    reading.source.take([sent(1, b"one"), sent(2, b"")])
    reading.source.take([sent(2**40, b"three")])
    found = [(message.tag, message.body) for message in reading.source.waiting]
    assert found == [(1, b"one"), (2, b""), (2**40, b"three")]
    assert reading.news == 2
    assert reading.channel.told == [("qos", 9), ("consume", "q")]


async def test_the_client_is_given_no_message(reading: Reading) -> None:
    """One that it got all the same is not taken for handled."""
    assert reading.channel.take is pass_by
    with pytest.raises(RuntimeError, match="through the client"):
        await pass_by(cast(DeliveredMessage, commands.Basic.Deliver("tag-1", 7)))


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


ANSWERS: dict[type[object], list[Frame]] = {
    commands.Connection.StartOk: [commands.Connection.Tune(16, 4096, 0)],
    commands.Connection.Open: [commands.Connection.OpenOk()],
    commands.Channel.Open: [commands.Channel.OpenOk()],
    commands.Basic.Qos: [commands.Basic.QosOk()],
    commands.Channel.Close: [commands.Channel.CloseOk()],
    commands.Connection.Close: [commands.Connection.CloseOk()],
}
OFFER = commands.Connection.Start(
    server_properties={"capabilities": {"consumer_cancel_notify": True}}, mechanisms="PLAIN"
)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak as a broker does; deliver two messages to a consumer, then delete his queue."""
    await reader.readexactly(8)
    writer.write(frame.marshal(OFFER, 0))
    with suppress(asyncio.IncompleteReadError):
        while True:
            head = await reader.readexactly(7)
            _, channel, size = frame.frame_parts(head)
            said = frame.unmarshal(head + await reader.readexactly((size or 0) + 1))[2]
            for answer in ANSWERS.get(type(said), ()):
                writer.write(frame.marshal(answer, channel))
            if isinstance(said, commands.Basic.Consume):
                tag = said.consumer_tag
                writer.write(frame.marshal(commands.Basic.ConsumeOk(tag), channel))
                writer.write(b"".join([*frames_of(1, b"one"), *frames_of(2, b"two")]))
                writer.write(frame.marshal(commands.Basic.Cancel(tag, nowait=True), channel))
    writer.close()


async def test_the_client_consumes_past_itself() -> None:
    """Whoever reads sees the messages and the end of the queue, and may close in peace."""
    news = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1") as server, asyncio.timeout(20):
        _, port = server.sockets[0].getsockname()
        source = await consume(f"amqp://guest:guest@127.0.0.1:{port}/", "q", 9, news.set)
        while not source.is_cancelled:
            await news.wait()
            news.clear()
        assert [message.body for message in source.waiting] == [b"one", b"two"]
        assert not source.is_lost
        await source.acknowledge(2)
        await source.close()
        assert source.is_lost
