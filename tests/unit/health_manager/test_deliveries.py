"""Frames as a broker sends them, cut anywhere; a real broker is in the integration tests."""

import asyncio
import ssl
from typing import cast

import pytest
from pamqp import commands, frame
from pamqp.body import ContentBody
from pamqp.header import ContentHeader
from yarl import URL

from gatemesh_health_manager.deliveries import Deliveries, DeliveriesLostError, tls_of

CHANNEL = 1


def sent(tag: int, *parts: bytes) -> bytes:
    """Return the frames of one delivery."""
    size = sum(map(len, parts))
    properties = commands.Basic.Properties(
        message_id=f"m{tag}", headers={"cloudEvents:id": "x"}, content_type="application/json"
    )
    frames: list[frame.FrameTypes] = [
        commands.Basic.Deliver("gatemesh", tag, redelivered=False, exchange="e", routing_key="k"),
        ContentHeader(0, size, properties),
        *map(ContentBody, parts),
    ]
    return b"".join(frame.marshal(each, CHANNEL) for each in frames)


class Wire:
    """A connection that is fed by hand, and what was written to it."""

    def __init__(self) -> None:
        self.news = 0
        self.written = bytearray()
        self.is_closed = False
        self.source = Deliveries(self.note)
        # Stands for a socket.
        self.source._transport = cast(asyncio.Transport, self)

    def note(self) -> None:
        """Count news."""
        self.news += 1

    def write(self, data: bytes) -> None:
        """Keep what is sent."""
        self.written += data

    def close(self) -> None:
        """Note the end."""
        self.is_closed = True

    def said(self) -> list[object]:
        """Return the frames that were sent."""
        found: list[object] = []
        data = bytes(self.written)
        while data:
            used, _, each = frame.unmarshal(data)
            found.append(each)
            data = data[used:]
        return found


STREAM = sent(1, b"one") + sent(2) + sent(4, b"") + sent(3, b"thr", b"ee") + sent(2**40, b"x" * 300)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50, len(STREAM)])
async def test_however_the_stream_is_cut_the_messages_are_whole(step: int) -> None:
    """Tag and body, in order."""
    wire = Wire()
    for start in range(0, len(STREAM), step):
        wire.source.data_received(STREAM[start : start + step])
    found = [(message.tag, message.body) for message in wire.source.waiting]
    assert found == [(1, b"one"), (2, b""), (4, b""), (3, b"three"), (2**40, b"x" * 300)]
    assert 1 <= wire.news <= 5


async def test_what_else_a_message_says_can_be_read() -> None:
    """For the dead letters."""
    wire = Wire()
    wire.source.data_received(sent(5, b"{}"))
    message = wire.source.waiting[0].unpacked()
    assert (message.body, message.message_id, message.routing_key) == (b"{}", "m5", "k")
    assert message.headers == {"cloudEvents:id": "x"}
    assert message.content_type == "application/json"


async def test_many_are_acknowledged_at_once_and_one_is_rejected() -> None:
    """Rejected is not requeued."""
    wire = Wire()
    wire.source.reject(3)
    wire.source.acknowledge(7)
    rejected, acknowledged = wire.said()
    assert isinstance(rejected, commands.Basic.Reject)
    assert (rejected.delivery_tag, rejected.requeue) == (3, False)
    assert isinstance(acknowledged, commands.Basic.Ack)
    assert (acknowledged.delivery_tag, acknowledged.multiple) == (7, True)


@pytest.mark.parametrize(
    "end",
    [
        frame.marshal(commands.Connection.Close(320, "shutdown", 0, 0), 0),
        frame.marshal(commands.Channel.Close(406, "unknown delivery tag", 60, 80), CHANNEL),
        b"\x01\x00\x00\x00\x00\x00\x01xx",
    ],
    ids=["connection", "channel", "broken"],
)
async def test_an_end_is_told_and_nothing_is_written_after_it(end: bytes) -> None:
    """What was delivered and not acknowledged comes again."""
    wire = Wire()
    wire.source.data_received(end)
    assert wire.source.is_lost
    assert wire.news == 1
    with pytest.raises(DeliveriesLostError):
        wire.source.acknowledge(1)
    await wire.source.close()
    assert wire.is_closed


async def test_a_deleted_queue_is_told() -> None:
    """The connection stays."""
    wire = Wire()
    wire.source.data_received(frame.marshal(commands.Basic.Cancel("gatemesh"), CHANNEL))
    assert (wire.source.is_cancelled, wire.source.is_lost, wire.news) == (True, False, 1)


async def test_the_login_is_that_of_the_address() -> None:
    """User, password and virtual host, decoded."""
    wire = Wire()
    url = URL("amqp://me:p%40ss@127.0.0.1:1/a%2Fb")
    task = asyncio.create_task(wire.source.consume(url, "q", 9))
    for answer, channel in ANSWERS:
        wire.source.data_received(frame.marshal(answer, channel))
    await asyncio.wait_for(task, 10)
    wire.written = wire.written.removeprefix(b"AMQP\x00\x00\x09\x01")
    said = wire.said()
    start = next(each for each in said if isinstance(each, commands.Connection.StartOk))
    assert start.response == "\0me\0p@ss"
    opened = next(each for each in said if isinstance(each, commands.Connection.Open))
    assert opened.virtual_host == "a/b"
    qos = next(each for each in said if isinstance(each, commands.Basic.Qos))
    assert qos.prefetch_count == 9
    wire.source.data_received(frame.marshal(commands.Connection.CloseOk(), 0))
    await wire.source.close()


ANSWERS = (
    (commands.Connection.Start(), 0),
    (commands.Connection.Tune(2047, 131072, 60), 0),
    (commands.Connection.OpenOk(), 0),
    (commands.Channel.OpenOk(), CHANNEL),
    (commands.Basic.QosOk(), CHANNEL),
    (commands.Basic.ConsumeOk("gatemesh"), CHANNEL),
)


async def test_an_answer_to_another_question_is_a_fault() -> None:
    """Nothing is guessed."""
    wire = Wire()
    wire.source.data_received(frame.marshal(commands.Basic.QosOk(), CHANNEL))
    with pytest.raises(DeliveriesLostError, match=r"QosOk"):
        await wire.source.consume(URL("amqp://127.0.0.1"), "q", 1)


def test_a_secured_address_is_verified_unless_told_otherwise() -> None:
    """And a plain one is not secured."""
    assert tls_of(URL("amqp://host")) is None
    context = tls_of(URL("amqps://host"))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    loose = tls_of(URL("amqps://host?no_verify_ssl=1"))
    assert loose is not None
    assert loose.verify_mode == ssl.CERT_NONE
