"""Which processes are ours, told by a mark in their environment and never by their name."""

import os
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemesh_mesh.waiting import wait_until

MARK_VARIABLE = "GATEMESH_STACK_MARK"
"""Every program of a stack inherits it; its value belongs to one state folder."""

PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessId:
    """One process for good: a number alone is given to another process later."""

    pid: int
    start_ticks: int


@dataclass(frozen=True)
class ProcessStat:
    """What the kernel says of one process."""

    state: str
    parent_pid: int
    start_ticks: int


def parse_stat(text: str) -> ProcessStat:
    """Read a `/proc/PID/stat` line; the name in it may hold spaces and brackets."""
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessStat(fields[0], int(fields[1]), int(fields[19]))


def identify(pid: int, proc: Path = PROC) -> ProcessId | None:
    """Return the process that has this number now; None when none has, or only a zombie."""
    try:
        stat = parse_stat((proc / str(pid) / "stat").read_text())
    except (OSError, ValueError, IndexError):
        return None
    # Process 1 of a container reaps late: a zombie is as good as gone.
    return None if stat.state in "ZX" else ProcessId(pid, stat.start_ticks)


def is_alive(process: ProcessId, proc: Path = PROC) -> bool:
    """Tell whether this very process still runs."""
    return identify(process.pid, proc) == process


def find_marked(mark: str, proc: Path = PROC) -> list[ProcessId]:
    """Return the running processes whose environment holds the mark, and all they have started."""
    running = [int(path.name) for path in proc.iterdir() if path.name.isdigit()]
    marked = {pid for pid in running if _has_mark(proc / str(pid), mark)}
    found = marked | _descendants(marked, running, proc)
    identified = (identify(pid, proc) for pid in sorted(found - {os.getpid()}))
    return [process for process in identified if process is not None]


def _has_mark(folder: Path, mark: str) -> bool:
    entry = f"{MARK_VARIABLE}={mark}".encode()
    try:
        return entry in (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _descendants(roots: set[int], running: Sequence[int], proc: Path) -> set[int]:
    # Postgres writes its status over its children's environment, so the mark alone misses them.
    parents = {pid: stat.parent_pid for pid in running if (stat := _stat(pid, proc))}
    found = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _stat(pid: int, proc: Path) -> ProcessStat | None:
    try:
        return parse_stat((proc / str(pid) / "stat").read_text())
    except (OSError, ValueError, IndexError):
        return None


def command_line(process: ProcessId, proc: Path = PROC) -> list[str]:
    """Return the words that the process was started with; empty when it has gone."""
    try:
        text = (proc / str(process.pid) / "cmdline").read_text(errors="replace")
    except OSError:
        return []
    return text.rstrip("\0").split("\0")


def describe(process: ProcessId, proc: Path = PROC) -> str:
    """Return the number and the program's name, for a person to read."""
    [program, *_] = [*command_line(process, proc), "?"]
    return f"{process.pid} ({Path(program).name})"


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signal this very process; nothing when it has gone."""
    if is_alive(process):
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return


def end_all(processes: Iterable[ProcessId], grace_s: float) -> list[ProcessId]:
    """SIGTERM, wait up to `grace_s` seconds for all of them, SIGKILL; return who is still there."""
    left = list(processes)
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        _send_and_wait(left, number, wait_s)
        left = [process for process in left if is_alive(process)]
    return left


def _send_and_wait(processes: Sequence[ProcessId], number: signal.Signals, wait_s: float) -> None:
    for process in processes:
        send(process, number)
    wait_until(lambda: not any(map(is_alive, processes)), wait_s)
