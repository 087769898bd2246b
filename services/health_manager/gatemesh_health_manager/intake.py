"""Verdicts from one queue, in batches: parsed, committed and acknowledged together, in order.

One acknowledgement and no task for each message: this is what most of the manager's time goes to.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import aio_pika
from aiormq.abc import AbstractChannel, DeliveredMessage
from pydantic import ValidationError

from gatemesh_common.consuming import BROKER_FAULTS, bury, retry_passing_faults
from gatemesh_common.messages import Verdict
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.batcher import describe

log = logging.getLogger(__name__)

RECONNECT_S = 1.0
LINGER_S = 0.002
LARGEST_BATCH = 400
LONGEST_LEAVING_S = 10.0

Apply = Callable[[Sequence[Verdict]], Awaitable[None]]
Received = tuple[DeliveredMessage, Verdict]


def read_verdict(body: bytes) -> Verdict:
    """Return the verdict of a body.

    Raises:
        ValidationError, ValueError: it is none.
    """
    try:
        return Verdict.model_validate_json(body)
    except ValidationError:
        # The thorough way takes what the quick one does not (half a character), and names faults.
        return Verdict.model_validate(json.loads(body))


class Intake:
    """Reads one queue; what nobody can handle goes to the dead letters and holds up nothing."""

    def __init__(
        self, amqp_url: str, queue: str, apply: Apply, publisher: Publisher, prefetch: int = 500
    ) -> None:
        self._amqp_url = amqp_url
        self.queue = queue
        self._apply = apply
        self._publisher = publisher
        self._prefetch = prefetch
        self._waiting: deque[DeliveredMessage] = deque()
        self._news = asyncio.Event()
        self._leaving = False

    def leave(self) -> None:
        """Have `run` return once what has been delivered is committed."""
        self._leaving = True
        self._news.set()

    async def run(self, reading: Callable[[], None] = lambda: None) -> None:
        """Read until told to leave, or until the broker ends the consumer: its queue was deleted.

        A lost connection is opened anew; `reading` is called each time it reads.
        """
        while not self._leaving:
            try:
                if await self._read_once(reading):
                    return
                error = "channel closed"
            except BROKER_FAULTS as fault:
                error = type(fault).__name__
            log.warning("intake_interrupted", extra={"queue": self.queue, "error": error})
            await asyncio.sleep(RECONNECT_S)

    async def _read_once(self, reading: Callable[[], None]) -> bool:
        """Read over one connection; True when it is over for good."""
        connection = await aio_pika.connect(self._amqp_url)
        try:
            opened = await connection.channel(publisher_confirms=False)
            channel = await opened.get_underlay_channel()
            return await self._consume(channel, reading)
        finally:
            self._waiting.clear()
            with suppress(*BROKER_FAULTS):
                await connection.close()

    async def _consume(self, channel: AbstractChannel, reading: Callable[[], None]) -> bool:
        ended = asyncio.Event()

        def end(_: object) -> None:
            ended.set()
            self._news.set()

        channel.closing.add_done_callback(end)
        channel.on_consumer_cancel_callbacks.add(end)
        await channel.basic_qos(prefetch_count=self._prefetch)
        answer = await channel.basic_consume(self.queue, self._take)
        reading()
        while not ended.is_set():
            await self._news.wait()
            self._news.clear()
            if self._leaving:
                await channel.basic_cancel(str(answer.consumer_tag))
                ended.set()
            while self._waiting and not channel.is_closed:
                await self._settle(channel, await self._batch())
        return not channel.is_closed

    async def _take(self, message: DeliveredMessage) -> None:
        self._waiting.append(message)
        self._news.set()

    async def _batch(self) -> list[DeliveredMessage]:
        """Return what waits, a little later: others are on their way."""
        if len(self._waiting) < LARGEST_BATCH:
            await asyncio.sleep(LINGER_S)
        count = min(LARGEST_BATCH, len(self._waiting))
        return [self._waiting.popleft() for _ in range(count)]

    async def _settle(self, channel: AbstractChannel, batch: list[DeliveredMessage]) -> None:
        """Commit a batch, then acknowledge it as a whole."""
        received: list[Received] = []
        for message in batch:
            try:
                received.append((message, read_verdict(message.body)))
            except (ValidationError, ValueError) as error:
                await self._refuse(channel, message, error)
        if received:
            await self._commit(channel, received)
        await channel.basic_ack(int(batch[-1].delivery_tag or 0), multiple=True)

    async def _commit(self, channel: AbstractChannel, received: Sequence[Received]) -> None:
        """Apply verdicts together; of those refused together, only the guilty one fails."""
        verdicts = [verdict for _, verdict in received]
        try:
            await retry_passing_faults(lambda: self._apply(verdicts))
        except Exception as error:  # noqa: BLE001 (the message goes to the dead letters with it)
            if len(received) == 1:
                await self._refuse(channel, received[0][0], error)
                return
            facts = {"size": len(received), "reason": describe(error)}
            log.warning("batch_refused", extra=facts)
            for one in received:
                await self._commit(channel, [one])

    async def _refuse(
        self, channel: AbstractChannel, message: DeliveredMessage, error: Exception
    ) -> None:
        """Move a message to the dead letters; where that fails, the broker does it."""
        copy = aio_pika.IncomingMessage(message, no_ack=True)
        if not await bury(self._publisher, copy, self.queue, error):
            await channel.basic_reject(int(message.delivery_tag or 0), requeue=False)


class Reader:
    """An intake at work, until it is ended in order."""

    def __init__(self, intake: Intake, reading: Callable[[], None] = lambda: None) -> None:
        self._intake = intake
        self.task = asyncio.create_task(intake.run(reading))

    async def end(self) -> None:
        """Return once what was delivered is committed, or its deadline is over."""
        self._intake.leave()
        _, late = await asyncio.wait([self.task], timeout=LONGEST_LEAVING_S)
        for task in late:
            task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
