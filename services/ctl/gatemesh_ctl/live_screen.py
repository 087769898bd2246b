"""The screen of `gatemesh-ctl watch`: pools, instances that are not well, what happened last."""

from collections import deque
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from gatemesh_ctl.application import POOL_COLUMNS, TRAFFIC_COLUMNS, UNWELL_COLUMNS
from gatemesh_ctl.output import printable, table_of
from gatemesh_ctl.store import Row
from gatemesh_ctl.watching import CUT, Look, event_line

MOST_LINES = 200
MOST_UNWELL = 15
FRAME_LINES = 12
"""Headings, pools and remarks beside the events."""
COLOURS = {"failed": "red", "resolved": "green", "quarantined": "red", "passed": "green"}


class Screen:
    """What is shown; each look replaces it."""

    def __init__(self) -> None:
        self._events: deque[Row] = deque(maxlen=MOST_LINES)
        self._last = Look(())

    def take(self, look: Look) -> None:
        """Take what a look has seen; one that failed leaves what was there, and says so."""
        self._events.extend(look.events)
        self._last = look if look.fault is None else Look((), self._last.parts, (), look.fault)

    def rendered(self, height: int) -> RenderableType:
        """Return what fits on a screen of so many lines."""
        parts = self._last.parts
        shown: list[RenderableType] = []
        for name, columns in (("pools", POOL_COLUMNS), ("traffic", TRAFFIC_COLUMNS)):
            if parts.get(name):
                shown += [table_of(parts[name], columns), Text()]
        if unwell := parts.get("unwell", []):
            shown += [table_of(unwell[:MOST_UNWELL], UNWELL_COLUMNS), Text()]
        shown += [Text(printable(line), style="bold yellow") for line in self._last.needs]
        if self._last.fault is not None:
            shown.append(Text(f"{self._last.fault.wrong}; trying again", style="bold red"))
        if self._last.is_cut:
            shown.append(Text(CUT, style="bold red"))
        room = max(3, height - FRAME_LINES - min(len(unwell), MOST_UNWELL))
        shown += [event_text(row) for row in list(self._events)[-room:]]
        return Group(*shown, Text("Ctrl-C ends it", style="dim"))


def event_text(row: Row) -> Text:
    """Return an event in its colour."""
    colour = next((it for word, it in COLOURS.items() if word in row["what"]), "")
    return Text(event_line(row), style=colour, overflow="ellipsis", no_wrap=True)


def show_live(looks: Iterable[Look], console: Console) -> None:
    """Show looks until there are no more."""
    screen = Screen()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for look in looks:
            screen.take(look)
            live.update(screen.rendered(console.height), refresh=True)
