"""A last way out for a service that was told to stop and does not come to its end."""

import asyncio
import logging
import os
import threading

log = logging.getLogger(__name__)

EXIT_STOP_OVERDUE = 71
"""Exit code of a service that could not stop in order; nothing confirmed is lost by that."""


def end_within(loop: asyncio.AbstractEventLoop, longest_s: float) -> None:
    """End the process for good unless it has ended by then; the log says what it waited for."""
    timer = threading.Timer(longest_s, give_up, (loop, longest_s))
    timer.daemon = True
    timer.start()


def give_up(loop: asyncio.AbstractEventLoop, waited_s: float) -> None:
    """Say what the service waits for, and end it."""
    try:
        log.error("stop_overdue", extra={"waited_s": waited_s, "waiting_for": waits_in(loop)})
    finally:
        os._exit(EXIT_STOP_OVERDUE)


def waits_in(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Return where the tasks of a loop stand: function and line, each once."""
    stacks = [task.get_stack(limit=1) for task in asyncio.all_tasks(loop)]
    places = {f"{frame.f_code.co_qualname}:{frame.f_lineno}" for stack in stacks for frame in stack}
    return sorted(places)
