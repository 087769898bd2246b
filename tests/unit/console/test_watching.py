"""One look serves all, and the console outlives a database that is away."""

import asyncio
from datetime import timedelta

from gatemesh_console.store import MOST_ROWS
from gatemesh_console.watching import MOST_PAGES, look, news, watch

from .conftest import EVENT, NOW, Office, make_office


async def test_a_look_takes_in_scores_and_events(office: Office) -> None:
    """For every page that shows what happens now."""
    watcher = office.desk.feed.join(None)
    await look(office.desk)
    assert office.desk.scores.of("engine/<0>") == (92.0,)
    event = await watcher.next(0)
    assert event is not None
    assert event.row["kind"] == "state"


async def test_a_look_reads_on_page_by_page(office: Office) -> None:
    """A burst of events is told whole."""
    events = [
        EVENT | {"at": NOW + timedelta(milliseconds=n), "what": f"e{n}"}
        for n in range(2 * MOST_ROWS + 5)
    ]
    office.store.tables["arrivals_v1"] = events[::-1]
    watcher = office.desk.feed.join(None)
    await look(office.desk)
    found = [await watcher.next(0) for _ in events]
    assert [one.row["what"] for one in found if one] == [row["what"] for row in events]
    assert not any(one.is_after_gap for one in found if one)


async def test_a_flood_is_read_in_part_and_says_so(office: Office) -> None:
    """After a long absence of the database nobody waits for all of it."""
    events = [
        EVENT | {"at": NOW + timedelta(milliseconds=n), "what": f"e{n}"}
        for n in range(MOST_PAGES * MOST_ROWS + 1)
    ]
    office.store.tables["arrivals_v1"] = events[::-1]
    rows, is_cut = await news(office.desk)
    assert (len(rows), is_cut, rows[-1]) == (MOST_PAGES * MOST_ROWS, True, events[1])


async def test_an_absence_is_told_and_its_end_too() -> None:
    """Readiness follows the database."""
    office = make_office(watch_every_s=0.2)
    told: list[bool] = []
    heard = asyncio.Event()

    def tell(is_up: bool) -> None:  # noqa: FBT001 (as it is called)
        told.append(is_up)
        office.store.is_away = len(told) == 1
        if len(told) == 3:
            heard.set()

    watching = asyncio.create_task(watch(office.desk, tell))
    async with asyncio.timeout(30):
        await heard.wait()
    watching.cancel()
    assert told == [True, False, True]
    await office.store.close()
