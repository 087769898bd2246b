"""The one look at the database that serves every page that shows what happens now."""

import asyncio
import logging
from collections.abc import Callable

from gatemesh_common.errors import GatemeshError
from gatemesh_console.desk import Desk
from gatemesh_console.scores import MOST_INSTANCES

log = logging.getLogger(__name__)


async def look(desk: Desk) -> None:
    """Take in scores and new events once."""
    desk.scores.look(await desk.store.scores(MOST_INSTANCES))
    found = await desk.store.timeline(desk.feed.since, None, None)
    desk.feed.take(found.rows)


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
