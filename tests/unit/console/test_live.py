"""Each event is told once, to everybody who watches, and nobody slow holds the others up."""

import asyncio
from datetime import timedelta
from typing import Any

from gatemesh_console.live import KEPT_EVENTS, OVERLAP, Feed, mark

from .conftest import EVENT, NOW


def event(seconds: float, what: str = "x") -> dict[str, Any]:
    """Return an event so long after noon."""
    return EVENT | {"at": NOW + timedelta(seconds=seconds), "what": what}


async def told(feed: Feed, after: int | None = None) -> list[str]:
    """Return what a newcomer is told at once."""
    watcher, found = feed.join(after), []
    while (one := await watcher.next(0)) is not None:
        found.append(str(one.row["what"]))
    return found


async def test_an_event_is_told_once_and_in_order() -> None:
    """Two looks at the database overlap, since rows are stored late."""
    feed = Feed(NOW)
    watcher = feed.join(None)
    feed.take([event(2, "b"), event(1, "a")])
    feed.take([event(3, "c"), event(2, "b"), event(1, "a"), event(1.5, "late")])
    found = [await watcher.next(0) for _ in range(5)]
    assert [one.row["what"] for one in found if one] == ["a", "b", "late", "c"]
    assert [one.number for one in found if one] == [1, 2, 3, 4]


async def test_one_who_comes_again_is_told_what_was_missed() -> None:
    """By the number of the last event; a newcomer has just read the page."""
    feed = Feed(NOW)
    feed.take([event(1, "a"), event(2, "b"), event(3, "c")])
    assert await told(feed, 1) == ["b", "c"]
    assert await told(feed, 3) == []
    assert await told(feed) == []
    # From a console of before: its numbers say nothing here.
    assert await told(feed, 99) == []


async def test_one_who_is_slow_keeps_his_place() -> None:
    """However much came meanwhile, while it is kept; the others are told at once."""
    feed = Feed(NOW)
    feed.take([event(0, "seen")])
    slow, quick = feed.join(None), feed.join(None)
    feed.take([event(1 + n / KEPT_EVENTS, f"e{n}") for n in range(KEPT_EVENTS)])
    for watcher in (quick, slow):
        found = [await watcher.next(0) for _ in range(KEPT_EVENTS)]
        assert [one.row["what"] for one in found if one] == [f"e{n}" for n in range(KEPT_EVENTS)]
        assert not any(one.is_after_gap for one in found if one)
        assert await watcher.next(0) is None


async def test_memory_is_bounded() -> None:
    """What is long past is forgotten, and still not told again; whoever missed it is told so."""
    feed = Feed(NOW)
    for n in range(KEPT_EVENTS + 7):
        feed.take([event(n, f"e{n}")])
    assert feed.since == NOW + timedelta(seconds=KEPT_EVENTS + 6) - OVERLAP
    watcher = feed.join(0)
    first = await watcher.next(0)
    assert first is not None
    assert (first.number, first.row["what"], first.is_after_gap) == (8, "e7", True)
    second = await watcher.next(0)
    assert second is not None
    assert (second.number, second.is_after_gap) == (9, False)


async def test_rows_that_were_not_all_read_leave_a_gap() -> None:
    """Before the oldest of them, if it is new."""
    feed = Feed(NOW)
    watcher = feed.join(None)
    feed.take([event(2, "b"), event(1, "a")], is_cut=True)
    feed.take([event(3, "c"), event(2, "b")], is_cut=True)
    found = [await watcher.next(0) for _ in range(3)]
    assert [(one.row["what"], one.is_after_gap) for one in found if one] == [
        *(("a", True), ("b", False), ("c", False)),
    ]


async def test_who_waits_is_woken() -> None:
    """A look tells everybody at once."""
    feed = Feed(NOW)
    watcher = feed.join(None)
    waiting = asyncio.create_task(watcher.next(60))
    await asyncio.sleep(0)
    feed.take([event(1, "a")])
    found = await waiting
    assert found is not None
    assert found.row["what"] == "a"


async def test_closing_ends_every_stream() -> None:
    """A console that stops waits for nobody."""
    feed = Feed(NOW)
    watcher = feed.join(None)
    feed.close()
    assert watcher.is_over
    assert await watcher.next(60) is None


def test_rows_that_differ_are_different_events() -> None:
    """Two steps may happen at the same moment."""
    assert mark(event(1, "a")) == mark(event(1, "a"))
    assert len({mark(event(1, "a")), mark(event(1, "b")), mark(event(2, "a"))}) == 3
