"""Brings one target what it is to be told: again and again until taken, or given up."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

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
    WAITING,
)
from gatemesh_notifier.sending import Send
from gatemesh_notifier.targets import Target
from gatemesh_notifier.wording import Wording

log = logging.getLogger(__name__)

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0


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

    async def run(self) -> None:
        """Deliver, for ever."""
        while True:
            notification = await self._next()
            WAITING.labels(self.target.name).set(self.mailbox.waiting)
            delivered = await self._deliver(notification)
            if delivered:
                self._note_delivered(notification)
            else:
                self._note_given_up(notification)
            for message_id in notification.message_ids:
                self._awaited.pop(message_id).set_result(delivered)

    async def _next(self) -> Notification:
        """Wait for the next notification that is due."""
        while True:
            now_s = self.monotonic()
            found = self.mailbox.take(now_s)
            if found is not None:
                return found
            at_s = self.mailbox.next_s(now_s)
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), None if at_s is None else at_s - now_s)
            except TimeoutError:
                continue

    async def _deliver(self, notification: Notification) -> bool:
        """Try until it is taken; False when it is given up."""
        text = self.wording.text_of(notification)
        end_s, delay_s = self.monotonic() + self.give_up_after_s, self.first_retry_s
        while not await self.send(text):
            FAILED_TRIES.labels(self.target.name).inc()
            TARGET_UP.labels(self.target.name).set(0)
            facts = {"target": self.target.name, "retry_in_s": delay_s}
            log.warning("notification_not_taken", extra=facts)
            if self.monotonic() + delay_s > end_s:
                return False
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, LONGEST_RETRY_S)
        TARGET_UP.labels(self.target.name).set(1)
        return True

    def _note_delivered(self, notification: Notification) -> None:
        now = self.clock()
        self.journal.write(self.target.name, notification.lines, now)
        NOTIFICATIONS.labels(self.target.name, notification.level.value).inc()
        oldest = min(line.fact.at for line in notification.lines)
        DELAY_SECONDS.observe(max(0.0, (now - oldest).total_seconds()))
        facts = {
            "target": self.target.name,
            "pool": notification.pool,
            "level": notification.level.value,
            "lines": len(notification.lines),
        }
        log.info("notification_delivered", extra=facts)

    def _note_given_up(self, notification: Notification) -> None:
        self.mailbox.fail(notification)
        UNDELIVERED.labels(self.target.name).inc()
        facts = {"target": self.target.name, "pool": notification.pool}
        log.error("notification_given_up", extra=facts)
