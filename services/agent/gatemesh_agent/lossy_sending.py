"""Messages that may be lost on their way: few, in memory only, dropped rather than kept waiting."""

import asyncio
import logging
from collections import deque
from typing import NamedTuple

import aio_pika
from prometheus_client import Counter

from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import Message
from gatemesh_common.publisher import Publisher, envelope

log = logging.getLogger(__name__)

MOST_WAITING = 100
MOST_WAITING_BYTES = 16 * 2**20
REST_S = 1.0
"""Pause after the broker did not take one; what is too much by then is dropped."""


class Ready(NamedTuple):
    """A message as it goes out, and where."""

    exchange: str
    key: str
    message: aio_pika.Message


class LossySender:
    """Publishes messages one by one; what the broker does not take is dropped and counted."""

    def __init__(self, publisher: Publisher, app_id: str, dropped: Counter) -> None:
        self._publisher = publisher
        self._app_id = app_id
        self._dropped = dropped
        self._waiting: deque[Ready] = deque()
        """Oldest first."""
        self._bytes = 0
        self._woken = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def put(self, message: Message) -> None:
        """Have a message sent soon; the oldest go when too many wait.

        Raises:
            ValueError: something in it cannot travel.
        """
        ready = envelope(message, self._app_id)
        self._waiting.append(Ready(message.exchange, message.key(), ready))
        self._bytes += len(ready.body)
        while len(self._waiting) > MOST_WAITING or self._bytes > MOST_WAITING_BYTES:
            self._take()
            self._dropped.labels(why="waiting").inc()
        self._woken.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                if not await self.send_one():
                    await asyncio.sleep(REST_S)

    async def send_one(self) -> bool:
        """Send the oldest message; False when the broker did not take it."""
        exchange, key, ready = self._take()
        try:
            await self._publisher.publish_raw(ready, exchange, key, mandatory=True)
        except GatemeshError as error:
            self._dropped.labels(why=type(error).__name__).inc()
            log.info("message_dropped", extra={"key": key, "error": str(error)})
            return False
        return True

    def _take(self) -> Ready:
        ready = self._waiting.popleft()
        self._bytes -= len(ready.message.body)
        return ready
