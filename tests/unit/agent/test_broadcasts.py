"""Reading broadcasts ends when the channel closes or the publisher falls silent."""

import asyncio

import pytest

from gatemesh_agent.broadcasts import receive_all


async def test_what_arrives_is_handed_on_in_order() -> None:
    """Until the channel closes."""
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    for body in (b"1", b"2", None, b"3"):
        arrived.put_nowait(body)
    taken: list[bytes] = []

    async def receive(body: bytes) -> None:
        taken.append(body)

    await receive_all(arrived, 5.0, receive)
    assert taken == [b"1", b"2"]


async def test_silence_ends_it() -> None:
    """A queue that the broker lost would be silent for ever."""

    async def receive(body: bytes) -> None:
        raise AssertionError(body)

    with pytest.raises(TimeoutError):
        await receive_all(asyncio.Queue(), 0.01, receive)
