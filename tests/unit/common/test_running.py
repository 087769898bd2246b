"""Running a service: until told to stop, or until a part of it ends."""

import asyncio
import os
import signal

import pytest
from aio_pika.exceptions import AMQPConnectionError

from gatemesh_common.running import first_to_end, stop_requested, with_broker


async def test_the_first_to_end_ends_the_others() -> None:
    """No part outlives the service."""
    cancelled = asyncio.Event()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await first_to_end(for_ever(), asyncio.sleep(0))
    assert cancelled.is_set()


async def test_an_error_of_a_part_is_the_services() -> None:
    """Nothing dies in silence."""

    async def fail() -> None:
        raise RuntimeError("part")

    with pytest.raises(RuntimeError, match="part"):
        await first_to_end(asyncio.Event().wait(), fail())


async def test_sigterm_is_a_request() -> None:
    """The service decides how it ends."""
    stop = stop_requested()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(stop.wait(), 10)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)


async def test_a_broker_that_is_not_there_yet_is_waited_for() -> None:
    """Whoever starts first waits."""
    tries = 0

    async def connect() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise AMQPConnectionError
        return "open"

    assert await with_broker(connect) == "open"
