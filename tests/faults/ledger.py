"""The ledger: events that the broker has confirmed, and what became of each of them in SQL."""

import asyncio
from itertools import count

from tests.acceptance.fleet import Fleet

from gatemesh_common.clock import utc_now
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import CheckLevel, Outcome, Reason, Verdict
from gatemesh_common.publisher import Publisher

PAUSE_S = 0.08
LAST_TRY_S = 40.0


class Ledger:
    """Publishes witnesses, verdicts that decide nothing, and notes each confirmation."""

    def __init__(self, amqp_url: str, instance_id: str, word: str) -> None:
        self._amqp_url = amqp_url
        self._instance_id = instance_id
        self.word = word
        """What the witnesses of this ledger bear as their type."""
        self.confirmed: list[str] = []
        self.repeated = 0
        self._numbers = count()

    async def run(self, stopped: asyncio.Event) -> None:
        """Publish until stopped; what was begun is confirmed first."""
        async with Publisher(self._amqp_url, "ledger", deadline_s=3.0) as publisher:
            while not stopped.is_set():
                await self.note(publisher)
                await asyncio.sleep(PAUSE_S)

    async def note(self, publisher: Publisher) -> str:
        """Publish one more witness, again and again until it is confirmed; return its id."""
        message = self.witness(next(self._numbers))
        async with asyncio.timeout(LAST_TRY_S * 3):
            while not await self._is_confirmed(publisher, message):
                self.repeated += 1
                await asyncio.sleep(0.2)
        self.confirmed.append(message.message_id)
        return message.message_id

    async def _is_confirmed(self, publisher: Publisher, message: Verdict) -> bool:
        try:
            await publisher.publish(message)
        except GatemeshError:
            return False
        return True

    def witness(self, number: int) -> Verdict:
        """Return a verdict that decides nothing and must not be lost."""
        return Verdict(
            message_id=f"{self.word}-{number}",
            instance_id=self._instance_id,
            request_id=f"{self.word}-{number}",
            timestamp=utc_now(),
            check_level=CheckLevel.L2,
            outcome=Outcome.SKIPPED,
            reason=Reason.NO_LOGPROBS,
            type=self.word,
        )

    def applied(self, fleet: Fleet) -> list[str]:
        """Return the ids of this ledger's witnesses in SQL, one per time it was applied."""
        query = "SELECT message_id FROM verdicts_v1 WHERE type = %(word)s"
        return [str(row["message_id"]) for row in fleet.rows(query, word=self.word)]

    def missing(self, fleet: Fleet) -> set[str]:
        """Return the confirmed witnesses that SQL does not have."""
        return set(self.confirmed) - set(self.applied(fleet))
