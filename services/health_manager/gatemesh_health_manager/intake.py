"""Verdicts from one queue, in batches: parsed, committed and acknowledged together, in order.

One acknowledgement and no task for each message: this is what most of the manager's time goes to.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from pydantic import ValidationError

from gatemesh_common.consuming import BROKER_FAULTS, bury, retry_passing_faults
from gatemesh_common.messages import Outcome, Verdict
from gatemesh_common.metrics import DEAD_LETTERED
from gatemesh_common.publisher import Publisher, whole_connection
from gatemesh_health_manager.batcher import describe
from gatemesh_health_manager.deliveries import Deliveries, Delivery, consume

log = logging.getLogger(__name__)

RECONNECT_S = 1.0
LINGER_S = 0.002
LARGEST_BATCH = 1000
"""Taken only when so many wait: what a transaction costs beside its verdicts is shared by more."""
LONGEST_LEAVING_S = 10.0
UNREADABLE = (ValueError, RecursionError)
"""What `read_verdict` raises; a body may be nested deeper than anybody reads."""

Apply = Callable[[Sequence[Verdict]], Awaitable[None]]
Received = tuple[Delivery, Verdict]


def read_verdict(body: bytes) -> Verdict:
    """Return the verdict of a body.

    Raises:
        ValueError, RecursionError: it is none.
    """
    try:
        return Verdict.model_validate_json(body)
    except ValidationError:
        # The thorough way takes what the quick one does not (half a character), and names faults.
        return Verdict.model_validate(json.loads(body))


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
        self._news = asyncio.Event()
        self._leaving = False
        DEAD_LETTERED.labels(queue=queue)

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
                error = "connection lost"
            except BROKER_FAULTS as fault:
                error = type(fault).__name__
            log.warning("intake_interrupted", extra={"queue": self.queue, "error": error})
            await asyncio.sleep(RECONNECT_S)

    async def _read_once(self, reading: Callable[[], None]) -> bool:
        """Read over one connection; True when it is over for good."""
        async with whole_connection():
            source = await consume(self._amqp_url, self.queue, self._prefetch, self._news.set)
        reading()
        try:
            return await self._follow(source)
        finally:
            await source.close()

    async def _follow(self, source: Deliveries) -> bool:
        while not source.is_lost:
            while source.waiting and not source.is_lost:
                await self._settle(source, await self._batch(source.waiting))
            if source.is_cancelled:
                return True
            if self._leaving:
                await source.cancel()
                continue
            await self._news.wait()
            self._news.clear()
        return False

    async def _batch(self, waiting: deque[Delivery]) -> list[Delivery]:
        """Return what waits, a little later: others are on their way."""
        if len(waiting) < LARGEST_BATCH:
            await asyncio.sleep(LINGER_S)
        return [waiting.popleft() for _ in range(min(LARGEST_BATCH, len(waiting)))]

    async def _settle(self, source: Deliveries, batch: Sequence[Delivery]) -> None:
        """Commit a batch, then acknowledge it as a whole."""
        received: list[Received] = []
        for message in batch:
            try:
                received.append((message, read_verdict(message.body)))
            except UNREADABLE as error:
                await self._refuse(source, message, error)
        for part in urgent_first(received):
            await self._commit(source, part)
        await source.acknowledge(batch[-1].tag)

    async def _commit(self, source: Deliveries, received: Sequence[Received]) -> None:
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


def urgent_first(received: Sequence[Received]) -> list[list[Received]]:
    """Part proofs from the rest of a batch, each in their order: nobody waits for counted evidence.

    Both are acknowledged together; what is decided does not hang on their order.
    """
    proofs = [one for one in received if is_proof(one[1])]
    others = [one for one in received if not is_proof(one[1])]
    return [part for part in (proofs, others) if part]


def is_proof(verdict: Verdict) -> bool:
    """Return True where one verdict takes an instance out."""
    return verdict.hard and verdict.outcome is Outcome.FAILED


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
