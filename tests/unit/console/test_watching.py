"""One look serves all, and the console outlives a database that is away."""

import asyncio

from gatemesh_console.watching import look, watch

from .conftest import Office, make_office


async def test_a_look_takes_in_scores_and_events(office: Office) -> None:
    """For every page that shows what happens now."""
    watcher = office.desk.feed.join(None)
    await look(office.desk)
    assert office.desk.scores.of("engine/<0>") == (92.0,)
    event = await watcher.next(0)
    assert event is not None
    assert event.row["kind"] == "state"


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
