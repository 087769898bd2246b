"""Answers to clients, as far as no network is needed."""

import asyncio
from unittest.mock import AsyncMock, Mock

import pytest
from aiohttp import StreamReader, web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gatemesh_agent.client import NEVER_WAITS_BYTES, Client, body_at_hand, read_body
from gatemesh_agent.errors import ClientGoneError


def request(writer: Mock | None = None, **headers: str) -> web.Request:
    """Return a request whose writer may fail."""
    own, transport = writer or working(), Mock()
    transport.get_write_buffer_size.return_value = 0
    named = CIMultiDict(headers)
    return make_mocked_request("POST", "/", headers=named, writer=own, transport=transport)


def working() -> Mock:
    """Return a writer that takes everything."""
    return Mock(write=AsyncMock(), write_eof=AsyncMock(), write_headers=AsyncMock(), length=None)


async def for_ever(_data: bytes) -> None:
    """Write to a client that does not read."""
    await asyncio.Event().wait()


async def test_nothing_is_sent_before_an_answer_begins() -> None:
    """Until then another instance may answer."""
    client = Client(request(), "R1", 5.0)
    assert not client.begun
    assert client.status == 499
    await client.begin(207, "Odd", {"X-A": "1", "Content-Length": "9"}, "engine-0", 4)
    assert client.begun
    headers = client.response.headers
    assert (headers["X-Gatemesh-Instance"], headers["X-Request-Id"]) == ("engine-0", "R1")
    assert (headers["X-A"], headers["Content-Length"]) == ("1", "4")
    assert client.status == 207


async def test_a_client_that_left_is_no_broken_engine() -> None:
    """Whichever write notices it."""
    writer = working()
    client = Client(request(writer), "R1", 5.0)
    await client.begin(200, None, {}, None, None)
    writer.write.side_effect = ConnectionResetError
    writer.write_eof.side_effect = ConnectionResetError
    with pytest.raises(ClientGoneError):
        await client.write(b"x")
    with pytest.raises(ClientGoneError):
        await client.end()


async def test_a_client_that_does_not_read_is_given_up() -> None:
    """Where there is room nobody waits; where there is none the wait has an end."""
    asked = request(working())
    client = Client(asked, "R1", 0.01)
    await client.begin(200, None, {}, None, None)
    transport = asked.transport
    assert isinstance(transport, Mock)
    transport.get_write_buffer_size.return_value = NEVER_WAITS_BYTES
    writer = asked.writer
    assert isinstance(writer, Mock)
    writer.write.side_effect = for_ever
    with pytest.raises(ClientGoneError, match="did not read"):
        await client.write(b"x")
    transport.abort.assert_called_once()


async def test_a_client_that_does_not_read_the_end_is_given_up() -> None:
    """Its engine's connection and its place in the queue are not held for it."""
    asked = request(working())
    client = Client(asked, "R1", 0.01)
    await client.begin(200, None, {}, None, None)
    writer, transport = asked.writer, asked.transport
    assert isinstance(writer, Mock)
    assert isinstance(transport, Mock)
    transport.get_write_buffer_size.return_value = NEVER_WAITS_BYTES
    writer.write_eof.side_effect = for_ever
    with pytest.raises(ClientGoneError, match="did not read"):
        await client.end()
    transport.abort.assert_called_once()


async def test_an_error_is_a_whole_answer() -> None:
    """With the headers that were asked for."""
    client = Client(request(), "R1", 5.0)
    await client.fail(503, b"{}", Retry_After="1")
    assert client.status == 503
    assert client.response.headers["Retry-After"] == "1"
    assert client.response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(("limit", "expected"), [(5, b"hello"), (4, None)])
async def test_bodies_have_a_limit(limit: int, expected: bytes | None) -> None:
    """Counted as they come, whatever the length header says."""
    payload = StreamReader(Mock(), 2**16, loop=asyncio.get_running_loop())
    payload.feed_data(b"hello")
    payload.feed_eof()
    assert await read_body(make_mocked_request("POST", "/", payload=payload), limit) == expected


async def test_a_length_over_the_limit_is_refused_unread() -> None:
    """Nothing is held."""
    payload = StreamReader(Mock(), 2**16, loop=asyncio.get_running_loop())
    asked = make_mocked_request("POST", "/", headers={"Content-Length": "10"}, payload=payload)
    assert await read_body(asked, 9) is None


@pytest.mark.parametrize(
    ("limit", "ended", "headers", "at_hand"),
    [
        (5, True, {}, b"hello"),
        (4, True, {}, None),
        (5, False, {}, None),
        (5, True, {"Expect": "100-continue"}, None),
    ],
)
async def test_a_body_that_came_with_its_headers_is_taken_at_once(
    limit: int,
    ended: bool,  # noqa: FBT001 (parametrized)
    headers: dict[str, str],
    at_hand: bytes | None,
) -> None:
    """What is not taken so can still be read."""
    payload = StreamReader(Mock(), 2**16, loop=asyncio.get_running_loop())
    payload.feed_data(b"hello")
    if ended:
        payload.feed_eof()
    asked = make_mocked_request(
        "POST", "/", headers=headers, payload=payload, writer=working(), transport=Mock()
    )
    assert body_at_hand(asked, limit) == at_hand
    payload.feed_eof()
    left = b"" if at_hand else b"hello"
    assert await read_body(asked, 5) == left


async def test_a_body_that_broke_off_is_not_taken() -> None:
    """It is no body."""
    payload = StreamReader(Mock(), 2**16, loop=asyncio.get_running_loop())
    payload.feed_data(b"hel")
    payload.set_exception(ConnectionResetError())
    payload.feed_eof()
    asked = make_mocked_request("POST", "/", payload=payload)
    assert body_at_hand(asked, 9) is None
    with pytest.raises(ClientGoneError):
        await read_body(asked, 9)
