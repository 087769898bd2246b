"""Running a service: until told to stop, or until a part of it ends; patient with the broker."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aio_pika.exceptions import AMQPError

from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.publisher import Publisher
from gatemesh_common.retrying import retry_passing_faults
from gatemesh_common.settling import settle_topology
from gatemesh_common.stopping import end_within
from gatemesh_common.topology import WorkQueue

T = TypeVar("T")
EXIT_SETTINGS = 2
"""Exit code of a service whose settings are wrong; starting it again cannot help."""
EXIT_PART_LOST = 70
"""Exit code of a service that lost a consumer; whoever supervises it starts it anew."""


def stop_requested(longest_s: float | None = None) -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; the process ends within `longest_s` of it."""
    event, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask() -> None:
        if longest_s is not None and not event.is_set():
            end_within(loop, longest_s)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    return event


async def first_to_end(*running: Awaitable[object]) -> None:
    """Return when one of them ends, cancel the others, and raise what it raised."""
    tasks = [asyncio.ensure_future(each) for each in running]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def with_broker(operation: Callable[[], Awaitable[T]]) -> T:
    """Do something that needs the broker as soon as it is there."""

    async def attempt() -> T:
        try:
            return await operation()
        except (AMQPError, OSError, TimeoutError) as error:
            raise BrokerUnavailableError(type(error).__name__) from error

    return await retry_passing_faults(attempt)


async def declare_when_up(publisher: Publisher, extra_queues: tuple[WorkQueue, ...] = ()) -> None:
    """Declare the topology as soon as the broker is there; who may not waits for who may."""

    async def attempt() -> None:
        await settle_topology(publisher, extra_queues)

    await with_broker(attempt)
