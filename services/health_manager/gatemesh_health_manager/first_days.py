"""The days that must be there before a manager starts, and what to say while they are not."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from gatemesh_common.errors import LockHeldError
from gatemesh_common.retrying import retry_passing_faults
from gatemesh_health_manager.store_days import Blockade, Holder

log = logging.getLogger(__name__)

PAUSE_S = 2.0
CURE = (
    "let that session end, or end it: SELECT pg_terminate_backend(PID); "
    "the start goes on by itself then"
)
LATER = "housekeeping makes them, every 10 minutes; today's are there"


class Days(Protocol):
    """Makes days, and says what is in their way."""

    async def prepare(self) -> int:
        """Make the days that are to come; raises LockHeldError where somebody is in the way."""

    async def blockade(self) -> Blockade:
        """Return what is in the way."""


async def prepare_days(
    days: Days, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Return when there is a day for what comes today; those ahead may be made later.

    A lock such as that of a dump over midnight would keep a manager from starting for hours.
    """
    said: Blockade | None = None
    while (found := await retry_passing_faults(partial(try_once, days))) is not None:
        if not found.without_today:
            log.warning("days_made_later", extra={"locks": worded(found), "cure": LATER})
            return
        if found != said:
            facts = {"tables": ", ".join(found.without_today), "locks": worded(found), "cure": CURE}
            log.error("today_not_made", extra=facts)
            said = found
        await sleep(PAUSE_S)


async def try_once(days: Days) -> Blockade | None:
    """Make the days that can be made; return what keeps the rest back, None when nothing does."""
    try:
        await days.prepare()
    except LockHeldError:
        return await days.blockade()
    return None


def worded(blockade: Blockade) -> str:
    """Say who holds which locks."""
    if not blockade.holders:
        return "none any more"
    return "; ".join(map(holder_words, blockade.holders))


def holder_words(holder: Holder) -> str:
    """Say who holds one lock."""
    if holder.pid is None:
        return f"a prepared transaction (pg_prepared_xacts) holds {holder.mode} on {holder.table}"
    program = holder.program or "a session"
    return f"{program} (pid {holder.pid}, {holder.user}) holds {holder.mode} on {holder.table}"
