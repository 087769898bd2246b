"""The one look at the database that serves every page that shows what happens now."""

import asyncio
import logging
from collections.abc import Callable

from gatemesh_common.errors import GatemeshError
from gatemesh_console.desk import Desk
from gatemesh_console.paging import Row, read_key
from gatemesh_console.scores import MOST_INSTANCES
from gatemesh_console.store import EVENT_KEY

log = logging.getLogger(__name__)

MOST_PAGES = 40
"""Of one look, 500 events each: after an hour without the database nobody reads more."""


async def look(desk: Desk) -> None:
    """Take in scores and new events once."""
    desk.scores.look(await desk.store.scores(MOST_INSTANCES))
    rows, is_cut = await news(desk)
    desk.feed.take(rows, is_cut=is_cut)


async def news(desk: Desk) -> tuple[list[Row], bool]:
    """Return what came since the last look, and whether there was more than a look bears."""
    rows: list[Row] = []
    after = None
    for _ in range(MOST_PAGES):
        found = await desk.store.timeline(desk.feed.since, None, after)
        rows += found.rows
        if found.after is None:
            return rows, False
        after = read_key(found.after, EVENT_KEY)
    log.warning("events_left_out", extra={"since": desk.feed.since.isoformat(), "read": len(rows)})
    return rows, True


async def watch(desk: Desk, tell: Callable[[bool], None]) -> None:
    """Look again and again; tells whether the database answers. Pages outlive its absence."""
    was_up = True
    while True:
        try:
            await look(desk)
            is_up = True
        except GatemeshError as error:
            is_up = False
            if was_up:
                log.warning("database_away", extra={"error": str(error)})
        was_up = is_up
        tell(is_up)
        await asyncio.sleep(desk.settings.watch_every_s)
