"""Brings one target what it is to be told: again and again until taken, or given up."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from gatemesh_common.clock import Clock
from gatemesh_notifier.facts import Fact
from gatemesh_notifier.grouping import Mailbox, Notification
from gatemesh_notifier.journal import Journal
from gatemesh_notifier.metrics import (
    DELAY_SECONDS,
    FAILED_TRIES,
    NOT_NEWS,
    NOTIFICATIONS,
    TARGET_UP,
    UNDELIVERED,
    UNWRITTEN,
    WAITING,
)
from gatemesh_notifier.sending import Send
from gatemesh_notifier.targets import Target
from gatemesh_notifier.wording import Wording

log = logging.getLogger(__name__)

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0


class Ending(Enum):
    """How the delivery of one notification ended."""

    DELIVERED = auto()
    GIVEN_UP = auto()
    STOPPED = auto()
    """The service stops; the events go back to their queue."""


@dataclass
class Courier:
    """One target, its mailbox, and who waits until what was put in is told."""

    target: Target
    mailbox: Mailbox
    wording: Wording
    journal: Journal
    send: Send
    give_up_after_s: float
    clock: Clock
    monotonic: Callable[[], float]
    first_retry_s: float = FIRST_RETRY_S
    _awaited: dict[str, asyncio.Future[bool]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def post(self, fact: Fact) -> asyncio.Future[bool] | None:
        """Take in a fact; the future says whether it was delivered. None: nothing to tell."""
        if not self.target.wants(fact) or self.journal.has(self.target.name, fact.message_id):
            return None
        known = self._awaited.get(fact.message_id)
        if known is not None:
            return known
        if not self.mailbox.put(fact, self.monotonic()):
            NOT_NEWS.labels(self.target.name).inc()
            return None
        WAITING.labels(self.target.name).set(self.mailbox.waiting)
        future = self._awaited[fact.message_id] = asyncio.get_running_loop().create_future()
        self._changed.set()
        return future

    def stop(self) -> None:
        """Have `run` end once a try that is under way is over: it may have been taken."""
        self._stopping.set()
        self._changed.set()

    async def run(self) -> None:
        """Deliver until stopped."""
        while (notification := await self._next()) is not None:
            WAITING.labels(self.target.name).set(self.mailbox.waiting)
            ending = await self._deliver(notification)
            if ending is Ending.STOPPED:
                return
            if ending is Ending.DELIVERED:
                self._note_delivered(notification)
            else:
                self._note_given_up(notification)
            for message_id in notification.message_ids:
                self._awaited.pop(message_id).set_result(ending is Ending.DELIVERED)

    async def _next(self) -> Notification | None:
        """Wait for the next notification that is due; None when stopped."""
        while not self._stopping.is_set():
            now_s = self.monotonic()
            found = self.mailbox.take(now_s)
            if found is not None:
                return found
            at_s = self.mailbox.next_s(now_s)
            self._changed.clear()
            await happens(self._changed, None if at_s is None else at_s - now_s)
        return None

    async def _deliver(self, notification: Notification) -> Ending:
        """Try until it is taken, given up or stopped.

        Waiting behind others counts: no event is held longer than the broker bears.
        """
        text = self.wording.text_of(notification)
        end_s, delay_s = notification.since_s + self.give_up_after_s, self.first_retry_s
        while not await self.send(text):
            FAILED_TRIES.labels(self.target.name).inc()
            TARGET_UP.labels(self.target.name).set(0)
            facts = {"target": self.target.name, "retry_in_s": delay_s}
            log.warning("notification_not_taken", extra=facts)
            if self.monotonic() + delay_s > end_s:
                return Ending.GIVEN_UP
            if await happens(self._stopping, delay_s):
                return Ending.STOPPED
            delay_s = min(delay_s * 2, LONGEST_RETRY_S)
        TARGET_UP.labels(self.target.name).set(1)
        return Ending.DELIVERED

    def _note_delivered(self, notification: Notification) -> None:
        now = self.clock()
        if not self.journal.write(self.target.name, notification.lines, now):
            UNWRITTEN.inc()
        NOTIFICATIONS.labels(self.target.name, notification.level.value).inc()
        oldest = min(line.fact.at for line in notification.lines)
        DELAY_SECONDS.observe(max(0.0, (now - oldest).total_seconds()))
        facts = {
            "target": self.target.name,
            "pool": notification.pool,
            # `level` is the log record's own.
            "notification_level": notification.level.value,
            "lines": len(notification.lines),
        }
        log.info("notification_delivered", extra=facts)

    def _note_given_up(self, notification: Notification) -> None:
        self.mailbox.fail(notification)
        UNDELIVERED.labels(self.target.name).inc()
        facts = {"target": self.target.name, "pool": notification.pool}
        log.error("notification_given_up", extra=facts)


async def happens(event: asyncio.Event, within_s: float | None) -> bool:
    """Wait for an event, for ever or for so long; True when it happened."""
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False
