"""Empties the spool into the broker: pipelined confirms, back-off, nothing silent."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from aio_pika.exceptions import AMQPError

from gatemesh_agent.metrics import SPOOL_AGE_SECONDS, SPOOL_REFUSED
from gatemesh_agent.spool import Spool, Spooled
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import Message
from gatemesh_common.publisher import Publisher

log = logging.getLogger(__name__)

BATCH = 100
IDLE_S = 0.5
FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 5.0
REFUSED_DELAY_S = 30.0
MOST_UNSTORED = 1000


class Sender:
    """Publishes what the spool holds and deletes it once confirmed."""

    def __init__(self, spool: Spool, publisher: Publisher, clock: Callable[[], float]) -> None:
        self._spool = spool
        self._publisher = publisher
        self._clock = clock
        self._woken = asyncio.Event()
        self._backoff_s = 0.0
        self._unstored: deque[Message] = deque(maxlen=MOST_UNSTORED)
        """What the disk refused, oldest first: the broker may take it all the same."""

    def put(self, message: Message) -> None:
        """Store a message and have it sent soon; returns at once."""
        if not self._spool.put(message):
            self._unstored.append(message)
        self._woken.set()

    async def run(self) -> None:
        """Send until cancelled; a broker that is away is waited for."""
        while True:
            self._woken.clear()
            sent = await self.send_once()
            if self._backoff_s:
                await asyncio.sleep(self._backoff_s)
            elif not sent:
                await self._wait(IDLE_S)

    async def send_once(self) -> int:
        """Send one batch; return how many messages the broker confirmed."""
        if self._unstored:
            await self._send_unstored()
        batch = self._spool.due(self._clock(), BATCH)
        SPOOL_AGE_SECONDS.set(age_s(batch, self._clock()))
        if not batch or not await self._reachable():
            return 0
        errors = await asyncio.gather(*(self._send(each) for each in batch))
        return self._settle(batch, errors)

    async def _send_unstored(self) -> None:
        while self._unstored and await self._reachable():
            message = self._unstored.popleft()
            try:
                await self._publisher.publish(message)
            except GatemeshError as error:
                extra = {"message_id": message.message_id, "error": str(error)}
                log.warning("unstored_message_refused", extra=extra)
                if error.retryable:
                    self._unstored.appendleft(message)
                    return

    async def drain(self, deadline_s: float) -> None:
        """Send what is due before the process ends, but no longer than the deadline."""
        try:
            async with asyncio.timeout(deadline_s):
                while await self.send_once():
                    pass
        except TimeoutError:
            log.warning("spool_left", extra={"messages": self._spool.depth})

    def _settle(self, batch: Sequence[Spooled], errors: Sequence[GatemeshError | None]) -> int:
        outcomes = list(zip(batch, errors, strict=True))
        sent = [each.row_id for each, error in outcomes if error is None]
        refused = [each.row_id for each, error in outcomes if error and not error.retryable]
        self._spool.delete(sent)
        self._spool.postpone(refused, self._clock() + REFUSED_DELAY_S)
        if len(sent) + len(refused) < len(batch):
            self._back_off("unconfirmed")
        else:
            self._backoff_s = 0.0
        return len(sent)

    async def _send(self, spooled: Spooled) -> GatemeshError | None:
        try:
            await self._publisher.publish_raw(
                spooled.message,
                spooled.exchange,
                spooled.routing_key,
                mandatory=spooled.mandatory,
            )
        except GatemeshError as error:
            SPOOL_REFUSED.labels(error=type(error).__name__).inc()
            extra = {"message_id": spooled.message.message_id, "error": str(error)}
            log.warning("spooled_message_refused", extra=extra)
            return error
        return None

    async def _reachable(self) -> bool:
        """Open the channel once for the whole batch, so that each message need not try."""
        try:
            async with asyncio.timeout(LONGEST_BACKOFF_S):
                await self._publisher.channel()
        except (AMQPError, OSError, RuntimeError, TimeoutError) as error:
            self._back_off(type(error).__name__)
            return False
        return True

    def _back_off(self, why: str) -> None:
        self._backoff_s = min(self._backoff_s * 2 or FIRST_BACKOFF_S, LONGEST_BACKOFF_S)
        extra = {"error": why, "spooled": self._spool.depth, "delay_s": self._backoff_s}
        log.warning("broker_away", extra=extra)

    async def _wait(self, longest_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._woken.wait()


def age_s(batch: Sequence[Spooled], now: float) -> float:
    """Return the age of the oldest message of a batch in seconds; 0 without any."""
    stamps = (each.message.timestamp for each in batch)
    return max((now - stamp.timestamp() for stamp in stamps if stamp), default=0.0)
