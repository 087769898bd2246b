"""Taking a core dump of an engine that is out of rotation and about to be ended."""

import asyncio
import os
import resource
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gatemesh_common.errors import GatemeshError
from gatemesh_executor.backends.process_group import (
    DEAD_STATES,
    PROC,
    living_members,
    read_stat,
)
from gatemesh_executor.core_files import kernel_name, missing_bytes
from gatemesh_executor.instances import CoreDump
from gatemesh_executor.weights.pull import PullFailedError, PullOrder, run_pull

LOOK_S = 0.1
LOG_NAME = ".core_dump.log"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
BLOCK_BYTES = 512


class CoreDumpFailedError(GatemeshError):
    """No core dump was taken; the engine can be ended all the same."""


@dataclass(frozen=True)
class DumpOrder:
    """Which processes are dumped, where to, and for how long at most."""

    rules: CoreDump
    group: int
    folder: Path
    timeout_s: float


class Dumper(Protocol):
    """Keeps the memory of processes."""

    async def dump(self, order: DumpOrder) -> None:
        """Write the dump into the folder.

        Raises:
            CoreDumpFailedError: it could not be done within its bounds; processes run on.
        """


class NoDumper:
    """For engines that are not on this machine."""

    async def dump(self, order: DumpOrder) -> None:
        """Take none."""
        raise CoreDumpFailedError("the engine does not run on the executor's machine")


class LocalDumper:
    """Dumps processes of this machine."""

    async def dump(self, order: DumpOrder) -> None:
        """Dump as the rules say."""
        pids = largest_first(order.group)
        if not pids:
            raise CoreDumpFailedError("none of its processes runs any more")
        way = by_gcore if order.rules.how == "gcore" else by_abort
        try:
            async with asyncio.timeout(order.timeout_s):
                await way(order, pids)
        except TimeoutError:
            raise CoreDumpFailedError(f"not done in {order.timeout_s:g} s") from None
        except OSError as error:
            raise CoreDumpFailedError(f"{error.strerror}: {error.filename}") from error
        finally:
            # A debugger that was cut off may leave a process stopped, and SIGTERM would wait.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(order.group, signal.SIGCONT)


async def by_gcore(order: DumpOrder, pids: Sequence[int]) -> None:
    """Have gdb copy every process, the largest first; they go on afterwards."""
    need_room(order, sum(map(resident_bytes, pids)))
    writing = asyncio.ensure_future(run_gcore(order, pids))
    growing = asyncio.ensure_future(until_too_large(order))
    try:
        await asyncio.wait({writing, growing}, return_when=asyncio.FIRST_COMPLETED)
        if not writing.done():
            raise CoreDumpFailedError(f"it grew past most_bytes, {order.rules.most_bytes}")
        writing.result()
    finally:
        for task in (writing, growing):
            task.cancel()
        await asyncio.gather(writing, growing, return_exceptions=True)


async def run_gcore(order: DumpOrder, pids: Sequence[int]) -> None:
    """Run gcore once for each process; one that ended meanwhile is left out."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    log = order.rules.folder / LOG_NAME
    for pid in pids:
        argv = ("gcore", "-o", str(order.folder / "core"), str(pid))
        run = PullOrder(argv, order.folder, log, environment, order.timeout_s)
        try:
            await run_pull(run)
        except PullFailedError as error:
            if read_stat(pid) is not None:
                raise CoreDumpFailedError(str(error)) from error
    if not any(order.folder.glob("core.*")):
        raise CoreDumpFailedError(f"gcore wrote nothing; see {log}")


async def until_too_large(order: DumpOrder) -> None:
    """Return once the folder holds more than it may."""
    while written_bytes(order.folder) <= order.rules.most_bytes:  # noqa: ASYNC110 (files)
        await asyncio.sleep(LOOK_S)


async def by_abort(order: DumpOrder, pids: Sequence[int]) -> None:
    """End the largest process by SIGABRT, and take over what the kernel writes."""
    pid = pids[0]
    pattern = (PROC / "sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|"):
        raise CoreDumpFailedError(
            "the kernel pipes cores to a program (core_pattern begins with |); use gcore"
        )
    need_room(order, resident_bytes(pid))
    home = (PROC / str(pid) / "cwd").resolve()
    adds_pid = (PROC / "sys/kernel/core_uses_pid").read_text().strip() == "1"
    name = kernel_name(pattern, pid, adds_pid=adds_pid)
    most = order.rules.most_bytes
    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (most, most))
    except (PermissionError, ValueError) as error:
        raise CoreDumpFailedError(f"its limit for cores cannot be set: {error}") from error
    begun = time.time()
    os.kill(pid, signal.SIGABRT)
    while is_alive(pid):  # noqa: ASYNC110 (another process)
        await asyncio.sleep(LOOK_S)
    found = newest_since(home, name, begun)
    if found is None:
        raise CoreDumpFailedError(f"the kernel wrote no core where core_pattern says: {pattern}")
    await asyncio.to_thread(shutil.move, found, order.folder / f"core.{pid}")


def is_alive(pid: int) -> bool:
    """True until the kernel has ended a process, and written its core."""
    stat = read_stat(pid)
    return stat is not None and stat.state not in DEAD_STATES


def newest_since(home: Path, name: str, begun: float) -> Path | None:
    """Return the newest file of a name, seen from a folder, that was written since a moment."""
    root, pattern = (Path("/"), name[1:]) if name.startswith("/") else (home, name)
    # File systems keep coarse times.
    fresh = [path for path in root.glob(pattern) if path.stat().st_mtime >= begun - 1]
    return max(fresh, key=lambda path: path.stat().st_mtime, default=None)


def need_room(order: DumpOrder, needed_bytes: int) -> None:
    """Raise CoreDumpFailedError where a dump is larger than allowed, or does not fit."""
    if needed_bytes > order.rules.most_bytes and order.rules.how == "gcore":
        raise CoreDumpFailedError(
            f"{needed_bytes / 1e9:.1f} GB are resident, most_bytes is {order.rules.most_bytes}"
        )
    needed_bytes = min(needed_bytes, order.rules.most_bytes)
    missing = missing_bytes(order.folder, needed_bytes)
    if missing:
        raise CoreDumpFailedError(
            f"{missing / 1e9:.1f} GB more are needed free in {order.rules.folder}"
        )


def largest_first(group: int) -> list[int]:
    """Return the processes of a group by the memory that they hold."""
    pids = [member.pid for member in living_members(group)]
    return sorted(pids, key=resident_bytes, reverse=True)


def resident_bytes(pid: int) -> int:
    """Return the memory that a process holds; 0 when it is gone."""
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def written_bytes(folder: Path) -> int:
    """Return what the files of a folder take on the disk: a core may be full of holes."""
    return sum(path.stat().st_blocks * BLOCK_BYTES for path in folder.glob("core.*"))
