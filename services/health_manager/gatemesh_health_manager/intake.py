"""Verdicts from one queue, in batches: parsed as they come, committed and acknowledged together.

One acknowledgement and no task for each message: this is what most of the manager's time goes to.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from gatemesh_common.consuming import BROKER_FAULTS, bury, retry_passing_faults
from gatemesh_common.messages import Verdict
from gatemesh_common.metrics import DEAD_LETTERED
from gatemesh_common.publisher import Publisher, whole_connection
from gatemesh_health_manager.batcher import describe
from gatemesh_health_manager.deliveries import Deliveries, Delivery, consume
from gatemesh_health_manager.lanes import Lane, Lanes, Received

log = logging.getLogger(__name__)

RECONNECT_S = 1.0
LINGER_S = 0.002
LONGEST_LEAVING_S = 10.0

Apply = Callable[[Sequence[Verdict]], Awaitable[None]]
Readable = tuple[Delivery, Verdict]


class Intake:
    """Reads one queue; what nobody can handle goes to the dead letters and holds up nothing."""

    def __init__(
        self, amqp_url: str, queue: str, apply: Apply, publisher: Publisher, prefetch: int = 2500
    ) -> None:
        self._amqp_url = amqp_url
        self.queue = queue
        self._apply = apply
        self._publisher = publisher
        self._prefetch = prefetch
        self._lanes = Lanes(LINGER_S)
        self._leaving = False
        DEAD_LETTERED.labels(queue=queue)

    def leave(self) -> None:
        """Have `run` return once what has been delivered is committed."""
        self._leaving = True
        self._lanes.wake()

    async def run(self, reading: Callable[[], None] = lambda: None) -> None:
        """Read until told to leave, or until the broker ends the consumer: its queue was deleted.

        A lost connection is opened anew; `reading` is called each time it reads.
        """
        while not self._leaving:
            try:
                if await self._read_once(reading):
                    return
                error = "connection lost"
            except BROKER_FAULTS as fault:
                error = type(fault).__name__
            log.warning("intake_interrupted", extra={"queue": self.queue, "error": error})
            await asyncio.sleep(RECONNECT_S)

    async def _read_once(self, reading: Callable[[], None]) -> bool:
        """Read over one connection; True when it is over for good."""
        lanes = self._lanes = Lanes(LINGER_S)
        async with whole_connection():
            source = await consume(
                self._amqp_url, self.queue, self._prefetch, lanes.take, lanes.wake
            )
        reading()
        try:
            return await self._follow(source, lanes)
        finally:
            await source.close()

    async def _follow(self, source: Deliveries, lanes: Lanes) -> bool:
        """Commit both lanes side by side, until nothing more comes."""
        tasks = [
            asyncio.create_task(self._empty(source, lane)) for lane in (lanes.proofs, lanes.others)
        ]
        try:
            return all(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _empty(self, source: Deliveries, lane: Lane) -> bool:
        """Commit what one lane holds; True once nothing more comes, False where it is lost."""
        while not source.is_lost:
            if lane.waiting:
                await self._settle(source, await lane.batch())
            elif source.is_cancelled:
                return True
            elif self._leaving and lane is self._lanes.others:
                await source.cancel()
            else:
                await lane.news()
        return False

    async def _settle(self, source: Deliveries, batch: Sequence[Received]) -> None:
        """Commit a batch, then acknowledge it as a whole."""
        readable: list[Readable] = []
        for delivery, said in batch:
            if isinstance(said, Verdict):
                readable.append((delivery, said))
            else:
                await self._refuse(source, delivery, said)
        if readable:
            await self._commit(source, readable)
        await source.settle(delivery.tag for delivery, _ in batch)

    async def _commit(self, source: Deliveries, received: Sequence[Readable]) -> None:
        """Apply verdicts together; halves of what is refused, until only the guilty one fails."""
        verdicts = [verdict for _, verdict in received]
        try:
            await retry_passing_faults(lambda: self._apply(verdicts))
        except Exception as error:  # noqa: BLE001 (the message goes to the dead letters with it)
            if len(received) == 1:
                await self._refuse(source, received[0][0], error)
                return
            facts = {"size": len(received), "reason": describe(error)}
            log.warning("batch_refused", extra=facts)
            half = len(received) // 2
            await self._commit(source, received[:half])
            await self._commit(source, received[half:])

    async def _refuse(self, source: Deliveries, message: Delivery, error: Exception) -> None:
        """Move a message to the dead letters; where that fails, the broker does it."""
        if not await bury(self._publisher, message.unpacked(), self.queue, error):
            await source.reject(message.tag)


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
