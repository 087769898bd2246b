"""The agent's side towards the engines, as far as no network is needed."""

import asyncio
import io
import time
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest
from multidict import CIMultiDict

from gatemesh_agent.connections import Answer, Connections
from gatemesh_agent.errors import InstanceSilentError, StreamBrokenError
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.upstream import (
    LARGE_BODY_BYTES,
    Order,
    Patience,
    Reply,
    Upstream,
    patience_of,
    sendable,
)


def test_a_large_body_goes_out_piece_by_piece() -> None:
    """Others get their turn; small ones and streams go as they are."""
    large = b"x" * (LARGE_BODY_BYTES + 1)
    sent = sendable(large)
    assert isinstance(sent, io.BytesIO)
    assert sent.getvalue() == large
    assert sendable(large[1:]) == large[1:]
    assert sendable(None) is None


def test_waits_come_from_the_settings() -> None:
    """Each in seconds."""
    settings = AgentSettings.model_validate({"first_byte_s": 1, "idle_s": 2, "total_s": 3})
    assert patience_of(settings) == Patience(1, 2, 3)


class Content:
    """What comes of an answer, when it comes."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()

    async def readany(self) -> bytes:
        """Return the next piece."""
        return await self.pieces.get()

    def at_eof(self) -> bool:
        """Return True: all that came is all there is."""
        return True


def reply_of(content: Content, patience: Patience = Patience(9, 9, 9)) -> Reply:  # noqa: B008
    """Return an answer that is still to be read."""
    return Reply(SimpleNamespace(content=content), patience, time.monotonic())  # type: ignore[arg-type]


async def test_a_stream_that_was_quiet_goes_on() -> None:
    """Nothing in time is no end; what comes later is read later."""
    content = Content()
    reply = reply_of(content)
    assert [await reply.within(0.01) for _ in range(3)] == [None, None, None]
    content.pieces.put_nowait(b"late")
    assert await reply.within(5) == b"late"
    content.pieces.put_nowait(b"and on")
    assert await reply.more() == b"and on"


async def test_silence_breaks_a_stream_off() -> None:
    """After the time that an answer may be silent."""
    with pytest.raises(StreamBrokenError, match="silent"):
        await reply_of(Content(), Patience(9, 0.01, 9)).more()
    with pytest.raises(InstanceSilentError):
        await reply_of(Content(), Patience(0.01, 9, 9)).first()


async def test_who_is_cancelled_meanwhile_is_cancelled() -> None:
    """It is not taken for silence, whoever is first."""
    waiting = asyncio.create_task(reply_of(Content()).within(0.02))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await reply_of(Content()).within(5)


async def test_an_answer_that_is_all_there_is_not_waited_for() -> None:
    """Its size counts all the same."""
    reply = reply_of(Content(), Patience(9, 0.01, 9))
    assert await reply.whole(b"{}", 2) == (b"{}", True)
    assert await reply.whole(b"{}", 1) == (b"{}", False)


async def test_an_engine_that_sends_no_headers_in_time_is_silent() -> None:
    """The wait for its connection is no other one."""

    async def never(*_: object) -> Answer:
        await asyncio.sleep(9)
        raise AssertionError

    connections = cast(Connections, SimpleNamespace(post=never))
    patience = Patience(0.01, 9, 9)
    upstream = Upstream(cast(aiohttp.ClientSession, None), patience, connections)
    order = Order("POST", "/v1", CIMultiDict(), b"{}")
    with pytest.raises(InstanceSilentError):
        await upstream.open("http://engine:1", order)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Upstream(cast(aiohttp.ClientSession, None), Patience(9, 9, 9), connections).open(
                "http://engine:1", order
            )
