"""Whether a local stack is still being started, so that what it lacks is no fault yet."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gatemesh_ctl.addresses import Addresses

STARTING = "the local stack is still starting: ./mesh up prints its addresses when all of it runs"
START_TICKS = 19
"""Where a process's start stands in its `stat`, counted behind its name: proc(5), field 22."""


def start_of(pid: int) -> int | None:
    """Return the clock tick in which a process was started; None where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[START_TICKS])
    except (OSError, ValueError, IndexError):
        return None


def is_starting(
    run: Mapping[str, Any], found: Addresses, started: Callable[[int], int | None] = start_of
) -> bool:
    """True while the stack that these addresses are of runs, and not all of it yet.

    One that was killed meanwhile is not starting: its supervisord is gone.
    """
    pid, ticks = run.get("supervisord") or (0, 0)
    is_its_own = (found.amqp_url, found.database_url) == (
        run.get("amqp_url"),
        run.get("database_url"),
    )
    return bool(run.get("starting")) and is_its_own and started(pid) == ticks
