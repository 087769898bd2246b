"""Watching the mesh: what is new since the last look, through the views."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from gatemesh_ctl.errors import UnreachableError
from gatemesh_ctl.output import printable
from gatemesh_ctl.store import Row
from gatemesh_ctl.summary import needs, pool_rows, unwell

SPAN = timedelta(seconds=120)
"""What is stored so late is still told."""
FIRST_TOLD = 10
"""Events of before that the first look tells."""
MOST_EVENTS = 1000

# Verdicts by the moment that is indexed: a look must not read all history.
EVENTS = """
    SELECT * FROM (
        SELECT at, instance_id, incarnation, incident_id, kind, what, detail
        FROM timeline_v1 WHERE kind <> 'verdict' AND at > now() - %(span)s
        UNION ALL
        SELECT "timestamp", instance_id, incarnation, NULL, 'verdict',
            check_level || ' ' || outcome || CASE WHEN hard THEN ' (hard)' ELSE '' END, reason
        FROM verdicts_v1 WHERE received_at > now() - %(span)s
            AND (outcome = 'failed' OR check_level = 'L5')) AS events
    ORDER BY at DESC LIMIT %(most)s"""


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
        events = self._news()
        if not self.whole:
            return Look(events)
        health = self.views.instances()
        parts = {
            "pools": pool_rows(health, self.views.pools()),
            "unwell": unwell(health),
            "traffic": self.views.traffic(),
        }
        return Look(events, parts, needs(parts))

    def _news(self) -> list[Row]:
        now, first = self.now(), self._looked_at is None
        away = timedelta(seconds=0 if self._looked_at is None else now - self._looked_at)
        rows = self.views.read(EVENTS, {"span": SPAN + away, "most": MOST_EVENTS})
        self._looked_at = now
        fresh = [row for row in reversed(rows) if key_of(row) not in self._known]
        self._known = {key_of(row): now for row in rows}
        wanted = [row for row in fresh if self.wanted(row)]
        return wanted[-FIRST_TOLD:] if first else wanted


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
