"""Watching the mesh: what is new since the last look, through the views."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import itemgetter
from typing import Any, Protocol

from gatemesh_ctl.errors import UnreachableError
from gatemesh_ctl.output import printable
from gatemesh_ctl.store import Row
from gatemesh_ctl.summary import needs, pool_rows, unwell

SPAN = timedelta(seconds=120)
"""What is stored so late is still told."""
FIRST_TOLD = 10
"""Events of before that the first look tells."""
MOST_EVENTS = 20_000
"""Of one look; of more, the newest, and it says so."""

CUT = f"more than {MOST_EVENTS} events at once; older ones are in timeline_v1"

EVENTS = """
    SELECT at, instance_id, incarnation, incident_id, kind, what, detail FROM arrivals_v1
    WHERE arrived_at > now() - %(span)s ORDER BY arrived_at DESC LIMIT %(most)s"""


class Views(Protocol):
    """What is read of the database."""

    def read(self, query: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Return the rows of a query."""

    def instances(self) -> list[Row]:
        """Return all instances."""

    def pools(self) -> list[Row]:
        """Return all pools."""

    def traffic(self) -> list[Row]:
        """Return the pools' traffic of the last hour."""


@dataclass(frozen=True)
class Look:
    """One look at the mesh."""

    events: Sequence[Row]
    """What is new, oldest first."""
    parts: Mapping[str, list[Row]] = field(default_factory=dict)
    """Pools, instances that are not well, traffic."""
    needs: Sequence[str] = ()
    fault: UnreachableError | None = None
    """Why there was nothing to see; it is tried again."""
    is_cut: bool = False
    """Whether older events were left out."""


@dataclass
class Watcher:
    """Looks again and again; a database that is away is waited for."""

    views: Views
    wanted: Callable[[Row], bool]
    every_s: float = 1.0
    whole: bool = True
    """Whether pools and instances are looked at, too."""
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _known: dict[tuple[Any, ...], float] = field(default_factory=dict)
    _looked_at: float | None = None

    def looks(self, for_s: float | None = None) -> Iterator[Look]:
        """Yield a look every so often, for so many seconds, or for ever.

        Raises:
            UnreachableError: the first look failed.
        """
        deadline = None if for_s is None else self.now() + for_s
        yield self.look()
        while deadline is None or self.now() < deadline:
            self.sleep(self.every_s)
            try:
                yield self.look()
            except UnreachableError as error:
                yield Look((), fault=error)

    def look(self) -> Look:
        """Look once."""
        events, is_cut = self._news()
        if not self.whole:
            return Look(events, is_cut=is_cut)
        health = self.views.instances()
        parts = {
            "pools": pool_rows(health, self.views.pools()),
            "unwell": unwell(health),
            "traffic": self.views.traffic(),
        }
        return Look(events, parts, needs(parts), is_cut=is_cut)

    def _news(self) -> tuple[list[Row], bool]:
        now, first = self.now(), self._looked_at is None
        away = timedelta(seconds=0 if self._looked_at is None else now - self._looked_at)
        rows = self.views.read(EVENTS, {"span": SPAN + away, "most": MOST_EVENTS})
        self._looked_at = now
        fresh = [row for row in rows if key_of(row) not in self._known]
        # Where the oldest that was read is new, others before it may be, too.
        is_cut = not first and len(rows) == MOST_EVENTS and fresh[-1:] == rows[-1:]
        self._known = {key_of(row): now for row in rows}
        wanted = sorted(filter(self.wanted, fresh), key=itemgetter("at"))
        return wanted[-FIRST_TOLD:] if first else wanted, is_cut


def key_of(row: Row) -> tuple[Any, ...]:
    """Return what tells one event from another."""
    return tuple(
        row[name] for name in ("at", "instance_id", "incident_id", "kind", "what", "detail")
    )


def event_line(row: Row) -> str:
    """Return an event as one line."""
    at = row["at"].astimezone()
    detail = f"  {row['detail']}" if row["detail"] else ""
    line = f"{at:%m-%d %H:%M:%S}  {row['instance_id']}  {row['kind']:8}  {row['what']}{detail}"
    return printable(line).replace("\n", " ")
