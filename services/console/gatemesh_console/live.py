"""The live timeline: one look at the database for all who watch, each event told once."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gatemesh_console.paging import Row

OVERLAP = timedelta(seconds=30)
"""Events may be stored some time after their own moment."""
KEPT_EVENTS = 5000
"""So far behind may one who watches be; a browser shows the last 500."""


@dataclass(frozen=True)
class Event:
    """One row of the timeline, with its place in what was told."""

    number: int
    row: Row
    is_after_gap: bool = False
    """True when events before it were left out."""


def mark(row: Row) -> str:
    """Return what makes two rows the same event."""
    words = (row["at"].isoformat(), *(row[name] for name in ("instance_id", "kind", "what")))
    return hashlib.sha256("\x00".join(map(str, (*words, row["detail"]))).encode()).hexdigest()


class Watcher:
    """One who watches, at his own pace: nobody slow holds the others up, or loses his place."""

    def __init__(self, feed: "Feed", seen: int) -> None:
        self._feed = feed
        self._seen = seen
        self._news = asyncio.Event()
        self.is_over = False

    def wake(self) -> None:
        """Have him look for news."""
        self._news.set()

    def end(self) -> None:
        """End his stream at once."""
        self.is_over = True
        self._news.set()

    async def next(self, patience_s: float) -> Event | None:
        """Return the next event; None when none came in time, or it is over."""
        self._news.clear()
        if self._feed.number == self._seen and not self.is_over:
            try:
                async with asyncio.timeout(patience_s):
                    await self._news.wait()
            except TimeoutError:
                return None
        event = None if self.is_over else self._feed.after(self._seen)
        if event is not None:
            self._seen = event.number
        return event


class Feed:
    """Knows what was told, and tells the rest to everybody who watches."""

    def __init__(self, began_at: datetime) -> None:
        self._began_at = began_at
        self._seen: dict[str, datetime] = {}
        self._kept: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._watchers: set[Watcher] = set()
        self._latest = began_at
        self.number = 0
        """That of the last event."""

    @property
    def since(self) -> datetime:
        """From which moment on rows are wanted."""
        return max(self._began_at, self._latest - OVERLAP)

    @property
    def watchers(self) -> int:
        """How many watch."""
        return len(self._watchers)

    def take(self, rows: Sequence[Row], *, is_cut: bool = False) -> None:
        """Tell what is new among these rows, oldest first; of cut ones the oldest are missing."""
        ordered = sorted(rows, key=lambda row: row["at"])
        for place, row in enumerate(ordered):
            sign = mark(row)
            if sign not in self._seen:
                self._seen[sign] = row["at"]
                self.number += 1
                self._kept.append(Event(self.number, row, is_cut and place == 0))
        self._latest = max([self._latest, *(row["at"] for row in rows)])
        self._seen = {sign: at for sign, at in self._seen.items() if at > self.since - OVERLAP}
        for watcher in self._watchers:
            watcher.wake()

    def after(self, number: int) -> Event | None:
        """Return the event that follows; where it is no longer kept, the first one that is."""
        if number >= self.number:
            return None
        first = self._kept[0].number
        if number + 1 < first:
            return Event(first, self._kept[0].row, is_after_gap=True)
        return self._kept[number + 1 - first]

    def join(self, after: int | None) -> Watcher:
        """Return a new watcher, who is told first what came after the event that he saw last."""
        # A number of a console of before says nothing here.
        watcher = Watcher(self, self.number if after is None else min(after, self.number))
        self._watchers.add(watcher)
        return watcher

    def close(self) -> None:
        """End every stream."""
        for watcher in self._watchers:
            watcher.end()

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self._watchers.discard(watcher)
