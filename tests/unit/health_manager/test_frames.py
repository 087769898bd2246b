"""Deliveries in a stream of frames, however it is cut."""

import asyncio
from itertools import pairwise

import pytest
from aiormq import AMQPConnectionError
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame
from pamqp.body import ContentBody
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat
from yarl import URL

from gatemesh_health_manager.frames import (
    SIGN_OF_LIFE,
    Delivery,
    Sieve,
    SievedConnection,
    SievedReader,
    SievedTransport,
    UnreadableError,
)

ANSWER = frame.marshal(commands.Basic.ConsumeOk("tag-1"), 1)
GREETING = b"AMQP\x00\x00\x09\x01"


def frames_of(tag: int, body: bytes, largest: int = 4) -> list[bytes]:
    """Return one message as the broker sends it, its body in small pieces."""
    properties = commands.Basic.Properties(message_id=f"m{tag}", headers={"cloudEvents:id": "x"})
    deliver = commands.Basic.Deliver("tag-1", tag, exchange="e", routing_key="k")
    pieces = [body[at : at + largest] for at in range(0, len(body), largest)]
    said = [deliver, ContentHeader(0, len(body), properties), *map(ContentBody, pieces)]
    return [frame.marshal(one, 1) for one in said]


def sent(tag: int, body: bytes) -> Delivery:
    """Return one message as it is handed over."""
    [delivery], _ = Sieve().feed(b"".join(frames_of(tag, body)))
    return delivery


def test_a_delivery_is_taken_and_tells_all_that_it_says() -> None:
    """For the dead letters it is more than its body."""
    delivery = sent(2**40, b"three pieces")
    assert (delivery.tag, delivery.body) == (2**40, b"three pieces")
    whole = delivery.unpacked()
    assert (whole.body, whole.message_id, whole.routing_key) == (b"three pieces", f"m{2**40}", "k")
    assert whole.headers == {"cloudEvents:id": "x"}


@given(
    bodies=st.lists(st.binary(max_size=12), max_size=4),
    cuts=st.lists(st.integers(0, 600), max_size=6),
    beats=st.lists(st.integers(0, 12), max_size=3),
)
def test_it_does_not_matter_how_a_stream_is_cut(
    bodies: list[bytes], cuts: list[int], beats: list[int]
) -> None:
    """Deliveries keep their order, and what is between their frames goes to the client."""
    frames = [ANSWER, *(one for tag, body in enumerate(bodies) for one in frames_of(tag, body))]
    for place in beats:
        frames.insert(min(place, len(frames)), SIGN_OF_LIFE)
    stream, sieve = b"".join(frames), Sieve()
    fed = [sieve.feed(stream[a:b]) for a, b in pairwise([0, *sorted(cuts), len(stream) + 600])]
    found = [(one.tag, one.body) for taken, _ in fed for one in taken]
    assert found == list(enumerate(bodies))
    rest = b"".join(rest for _, rest in fed)
    told = sum(bool(taken) for taken, _ in fed)
    assert rest.replace(SIGN_OF_LIFE, b"") == ANSWER
    assert rest.count(SIGN_OF_LIFE) == len(beats) + told


def test_whoever_is_told_nothing_else_hears_that_the_broker_lives() -> None:
    """A client that hears nothing for a while closes the connection."""
    sieve, [method, header, body] = Sieve(), frames_of(1, b"one")
    assert sieve.feed(method + header) == ([], b"")
    taken, rest = sieve.feed(body)
    assert (len(taken), rest) == (1, Heartbeat().marshal())


def test_content_of_other_methods_is_the_clients() -> None:
    """A message that came back, or was asked for."""
    [_, *content] = frames_of(1, b"one")
    back = [frame.marshal(commands.Basic.Return(312, "NO_ROUTE", "e", "k"), 1), *content]
    assert Sieve().feed(b"".join(back)) == ([], b"".join(back))


@pytest.mark.parametrize("fault", [GREETING, b"HTTP/1.1 400 Bad Request\r\n"], ids=["amqp", "http"])
def test_what_is_no_frame_is_for_the_client_to_refuse(fault: bytes) -> None:
    """Nothing waits for an end that does not come."""
    assert Sieve().feed(fault) == ([], fault)


def test_a_frame_without_its_end_is_for_the_client_to_refuse() -> None:
    """It is no delivery."""
    [method, *_] = frames_of(1, b"one")
    broken = method[:-1] + b"\x00"
    assert Sieve().feed(broken) == ([], broken)


@pytest.mark.parametrize("place", ["method", "header"])
def test_what_cannot_be_unpacked_is_named(place: str) -> None:
    """Whoever handles it leaves it to the broker."""
    with pytest.raises(UnreadableError):
        sent(1, b"one")._replace(**{place: ANSWER[:9]}).unpacked()
    with pytest.raises(UnreadableError, match="other frames"):
        sent(1, b"one")._replace(**{place: ANSWER}).unpacked()


async def test_the_client_reads_what_is_left() -> None:
    """And ends where the broker ends."""
    taken: list[Delivery] = []
    reader = SievedReader(taken.extend)
    reader.feed_data(ANSWER + b"".join(frames_of(3, b"body")))
    reader.feed_eof()
    assert await reader.read() == ANSWER + SIGN_OF_LIFE
    assert [(one.tag, one.body) for one in taken] == [(3, b"body")]


async def test_it_opens_a_stream() -> None:
    """Both ways, to a real socket."""
    taken: list[Delivery] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(8) + b"".join(frames_of(3, b"body")))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        url = URL.build(scheme="amqp", host=host, port=port)
        reader, writer = await SievedTransport(taken.extend).create(url, ssl_context_provider=None)
        writer.write(SIGN_OF_LIFE)
        assert await reader.read() == SIGN_OF_LIFE * 2
        writer.close()
    assert [one.tag for one in taken] == [3]


async def test_where_nobody_is_the_client_hears_it() -> None:
    """As a fault of the connection, which is tried again."""
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1") as server:
        _, port = server.sockets[0].getsockname()
    url = URL.build(scheme="amqp", host="127.0.0.1", port=port)
    with pytest.raises(AMQPConnectionError):
        await SievedTransport(lambda _: None).create(url, ssl_context_provider=None)


async def test_a_connection_hands_its_deliveries_to_whoever_wants_them() -> None:
    """He may be named after it was made."""
    taken: list[Delivery] = []
    connection = SievedConnection(URL("amqp://127.0.0.1"))
    connection.take = taken.extend
    connection.kwargs["transport_factory"]._take([sent(3, b"body")])
    assert [one.tag for one in taken] == [3]
