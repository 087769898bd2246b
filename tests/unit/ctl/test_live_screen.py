"""The live screen, drawn into memory."""

import io
from datetime import UTC, datetime

from rich.console import Console

from gatemesh_ctl.errors import UnreachableError
from gatemesh_ctl.live_screen import Screen, show_live
from gatemesh_ctl.store import Row
from gatemesh_ctl.watching import Look

POOL: Row = {
    "pool": "chat",
    "instances": 3,
    "in_rotation": 2,
    "mode": "act",
    "paused": False,
    "braked": False,
    "states": "2 healthy, 1 draining",
}


def event(what: str) -> Row:
    """Return an event."""
    return {
        "at": datetime(2026, 5, 1, tzinfo=UTC),
        "instance_id": "engine-0",
        "kind": "incident",
        "what": what,
        "detail": "[red]x",
    }


def drawn(screen: Screen, height: int = 40) -> str:
    """Return what is on the screen."""
    console = Console(file=io.StringIO(), width=120, height=height)
    console.print(screen.rendered(height))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_pools_remarks_and_events_are_shown() -> None:
    """Nothing is taken for markup."""
    screen = Screen()
    screen.take(Look([event("opened")], {"pools": [POOL]}, ["pool chat: look"]))
    text = drawn(screen)
    for words in ("2 healthy, 1 draining", "pool chat: look", "opened  [red]x", "Ctrl-C"):
        assert words in text


def test_an_outage_leaves_what_was_there_and_says_so() -> None:
    """An empty screen would look like an empty mesh."""
    screen = Screen()
    screen.take(Look([event("opened")], {"pools": [POOL]}))
    screen.take(Look((), fault=UnreachableError("the database is away", "wait")))
    text = drawn(screen)
    assert "the database is away; trying again" in text
    assert "2 healthy" in text
    assert "opened" in text


def test_the_newest_events_fit_the_screen() -> None:
    """Whatever its height."""
    screen = Screen()
    screen.take(Look([event(f"number {it:03}") for it in range(300)]))
    text = drawn(screen, height=20)
    assert "number 299" in text
    assert "number 200" not in text
    assert len(text.splitlines()) <= 20


def test_a_live_screen_ends_with_its_looks() -> None:
    """And gives the terminal back."""
    console = Console(file=io.StringIO(), width=80, height=20, force_terminal=True)
    show_live([Look([event("one")]), Look([event("two")])], console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "two" in text
    assert text.endswith("\x1b[?25h\x1b[?1049l")
