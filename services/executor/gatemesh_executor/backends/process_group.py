"""Process groups of this machine, read from /proc: who is left of an engine, and ending them."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gatemesh_executor.backends.base import StopFailedError

PROC = Path("/proc")
DEAD_STATES = frozenset("ZX")


@dataclass(frozen=True)
class ProcessStat:
    """What the kernel says of one process."""

    pid: int
    state: str
    parent: int
    group: int
    session: int


def parse_stat(text: str) -> ProcessStat:
    """Read the text of /proc/PID/stat; the command's name in it may hold spaces and brackets."""
    head, _, tail = text.rpartition(")")
    state, parent, group, session = tail.split()[:4]
    return ProcessStat(int(head.split()[0]), state, int(parent), int(group), int(session))


def read_stat(pid: int, proc: Path = PROC) -> ProcessStat | None:
    """Return what is known of a process; None when it is gone."""
    try:
        return parse_stat((proc / str(pid) / "stat").read_text())
    except (OSError, ValueError):
        return None


def read_command(pid: int, proc: Path = PROC) -> bytes:
    """Return the command line of a process, its words ended by NUL; empty when it is gone."""
    try:
        return (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def living_members(group: int, proc: Path = PROC) -> tuple[ProcessStat, ...]:
    """Return the processes of a group that still live; zombies do not count."""
    return tuple(
        found
        for found in _all_stats(proc)
        if found.group == group and found.state not in DEAD_STATES
    )


def orphans(group: int, session: int, proc: Path = PROC) -> tuple[ProcessStat, ...]:
    """Return what is left of a group whose leader is gone.

    Empty when a leader lives (the number was given to somebody new) and when the members belong to
    another session than the platform that started the group.
    """
    members = living_members(group, proc)
    reused = any(member.pid == group or member.session != session for member in members)
    return () if reused else members


def kill_group(group: int) -> None:
    """Send SIGKILL to every member; harmless when none is left.

    Raises:
        StopFailedError: this process may not signal them.
    """
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise StopFailedError(
            f"the executor (user id {os.geteuid()}) may not kill process group {group}; run it as "
            "the user of the engines or as root"
        ) from error


def _all_stats(proc: Path) -> Iterator[ProcessStat]:
    with suppress(OSError):
        for entry in proc.iterdir():
            found = read_stat(int(entry.name), proc) if entry.name.isdecimal() else None
            if found is not None:
                yield found
