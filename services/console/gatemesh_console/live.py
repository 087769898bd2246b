"""The live timeline: one look at the database for all who watch, each event told once."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gatemesh_console.paging import Row

OVERLAP = timedelta(seconds=30)
"""Events may be stored some time after their own moment."""
KEPT_EVENTS = 500
QUEUE_EVENTS = 300


@dataclass(frozen=True)
class Event:
    """One row of the timeline, with its place in what was told."""

    number: int
    row: Row


def mark(row: Row) -> str:
    """Return what makes two rows the same event."""
    words = (row["at"].isoformat(), *(row[name] for name in ("instance_id", "kind", "what")))
    return hashlib.sha256("\x00".join(map(str, (*words, row["detail"]))).encode()).hexdigest()


class Watcher:
    """One who watches: a queue that drops him when he cannot keep up."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(QUEUE_EVENTS)
        self.is_lost = False

    def tell(self, event: Event) -> None:
        """Hand him an event; one too many ends his stream, and his browser comes again."""
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.is_lost = True

    def end(self) -> None:
        """End his stream at once."""
        self.is_lost = True
        if not self._queue.full():
            self._queue.put_nowait(None)

    async def next(self, patience_s: float) -> Event | None:
        """Return the next event; None when none came in time."""
        try:
            async with asyncio.timeout(patience_s):
                return await self._queue.get()
        except TimeoutError:
            return None


class Feed:
    """Knows what was told, and tells the rest to everybody who watches."""

    def __init__(self, began_at: datetime) -> None:
        self._began_at = began_at
        self._seen: dict[str, datetime] = {}
        self._kept: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._watchers: set[Watcher] = set()
        self._number = 0
        self._latest = began_at

    @property
    def since(self) -> datetime:
        """From which moment on rows are wanted."""
        return max(self._began_at, self._latest - OVERLAP)

    @property
    def watchers(self) -> int:
        """How many watch."""
        return len(self._watchers)

    def take(self, rows: Sequence[Row]) -> None:
        """Tell what is new among these rows, oldest first."""
        for row in sorted(rows, key=lambda row: row["at"]):
            sign = mark(row)
            if sign not in self._seen:
                self._seen[sign] = row["at"]
                self._tell(row)
        self._latest = max([self._latest, *(row["at"] for row in rows)])
        self._seen = {sign: at for sign, at in self._seen.items() if at > self.since - OVERLAP}

    def _tell(self, row: Row) -> None:
        self._number += 1
        event = Event(self._number, row)
        self._kept.append(event)
        for watcher in self._watchers:
            watcher.tell(event)

    def join(self, after: int | None) -> Watcher:
        """Return a new watcher, who is told first what came after the event that he saw last."""
        watcher = Watcher()
        for event in self._missed(after):
            watcher.tell(event)
        self._watchers.add(watcher)
        return watcher

    def _missed(self, after: int | None) -> Iterable[Event]:
        if after is None or after > self._number:
            return ()
        return [event for event in self._kept if event.number > after][-QUEUE_EVENTS:]

    def close(self) -> None:
        """End every stream."""
        for watcher in self._watchers:
            watcher.end()

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self._watchers.discard(watcher)
