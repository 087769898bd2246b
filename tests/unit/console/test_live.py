"""Each event is told once, to everybody who watches, and nobody slow holds the others up."""

from datetime import timedelta
from typing import Any

from gatemesh_console.live import KEPT_EVENTS, OVERLAP, QUEUE_EVENTS, Feed, mark

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


async def test_one_who_is_slow_is_dropped() -> None:
    """And the others are told everything."""
    feed = Feed(NOW)
    slow = feed.join(None)
    feed.take([event(n, f"e{n}") for n in range(QUEUE_EVENTS + 1)])
    assert slow.is_lost
    feed.leave(slow)
    assert feed.watchers == 0


async def test_memory_is_bounded() -> None:
    """What is long past is forgotten, and still not told again."""
    feed = Feed(NOW)
    for n in range(3 * KEPT_EVENTS):
        feed.take([event(n, f"e{n}")])
    assert feed.since == NOW + timedelta(seconds=3 * KEPT_EVENTS - 1) - OVERLAP
    assert len(await told(feed, 0)) == QUEUE_EVENTS


async def test_closing_ends_every_stream() -> None:
    """A console that stops waits for nobody."""
    feed = Feed(NOW)
    watcher = feed.join(None)
    feed.close()
    assert watcher.is_lost
    assert await watcher.next(60) is None


def test_rows_that_differ_are_different_events() -> None:
    """Two steps may happen at the same moment."""
    assert mark(event(1, "a")) == mark(event(1, "a"))
    assert len({mark(event(1, "a")), mark(event(1, "b")), mark(event(2, "a"))}) == 3
