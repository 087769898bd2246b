"""Deliveries parted as they come: a proof never waits for evidence that is only counted."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import ValidationError

from gatemesh_common.messages import Verdict
from gatemesh_health_manager.deliveries import Delivery

USUAL_BATCH = 200
"""What one transaction takes while fewer than `LARGEST_BATCH` wait: nobody waits for it long."""
LARGEST_BATCH = 1000
"""Taken only when so many wait: what a transaction costs beside its verdicts is shared by more."""
UNREADABLE = (ValueError, RecursionError)
"""What `read_verdict` raises; a body may be nested deeper than anybody reads."""


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


class Received(NamedTuple):
    """One delivery, and what it says, or why it says nothing."""

    delivery: Delivery
    said: Verdict | Exception


def receive(delivery: Delivery) -> Received:
    """Read a delivery."""
    try:
        return Received(delivery, read_verdict(delivery.body))
    except UNREADABLE as error:
        return Received(delivery, error)


@dataclass
class Lane:
    """What waits for one committer, in its order."""

    linger_s: float = 0.0
    """How long a batch that is not full waits for what is on its way."""
    waiting: deque[Received] = field(default_factory=deque)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, received: Received) -> None:
        """Have one more wait."""
        self.waiting.append(received)
        self._news.set()

    def wake(self) -> None:
        """Have whoever waits for news look around."""
        self._news.set()

    async def news(self) -> None:
        """Return once there is something to look at."""
        await self._news.wait()
        self._news.clear()

    async def batch(self) -> list[Received]:
        """Return what waits, not too much of it at once."""
        if self.linger_s and len(self.waiting) < USUAL_BATCH:
            await asyncio.sleep(self.linger_s)
        count = LARGEST_BATCH if len(self.waiting) >= LARGEST_BATCH else USUAL_BATCH
        return [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]


class Lanes:
    """The lane of proofs and that of all else; what is decided does not hang on which is first."""

    def __init__(self, linger_s: float) -> None:
        self.proofs = Lane()
        self.others = Lane(linger_s)

    def take(self, delivery: Delivery) -> None:
        """Read a delivery and let it wait in its lane."""
        received = receive(delivery)
        said = received.said
        (self.proofs if isinstance(said, Verdict) and said.is_proof else self.others).put(received)

    def wake(self) -> None:
        """Have the committers of both look around."""
        self.proofs.wake()
        self.others.wake()
