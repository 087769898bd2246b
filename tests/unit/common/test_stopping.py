"""A service that was told to stop ends, whatever keeps it."""

import asyncio
import subprocess
import sys

from gatemesh_common.stopping import EXIT_STOP_OVERDUE, waits_in

STUBBORN = """
import asyncio, os, signal
from gatemesh_common.log import configure_logging
from gatemesh_common.running import stop_requested

async def never_ends():
    await asyncio.Event().wait()

async def main():
    configure_logging("test", "INFO")
    stop = stop_requested(longest_s=0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.wait()
    await never_ends()

asyncio.run(main())
"""


def test_a_service_that_cannot_stop_says_why_and_is_gone() -> None:
    """A supervisor sees another exit code than that of a clean end."""
    ended = subprocess.run(
        [sys.executable, "-c", STUBBORN], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == EXIT_STOP_OVERDUE
    told = ended.stdout + ended.stderr
    assert "stop_overdue" in told
    assert "main:" in told


async def test_what_tasks_wait_for_is_told_by_function_and_line() -> None:
    """Without any of their data."""

    async def asleep() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(asleep())
    await asyncio.sleep(0)
    places = waits_in(asyncio.get_running_loop())
    task.cancel()
    assert any("asleep:" in place for place in places)
