"""The processes of a running nginx, read from /proc: its master, and which workers serve."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from gatemesh_executor.backends.process_group import PROC, read_command, read_stat

MASTER = "nginx: master process"
WORKER = "nginx: worker process"
LEAVING = "nginx: worker process is shutting down"
"""Title of a worker that takes no new connection; it stays for its running requests."""


def title_of(pid: int, proc: Path = PROC) -> str:
    """Return what a process calls itself; empty when it is gone."""
    return read_command(pid, proc).decode(errors="replace").replace("\0", " ").strip()


def master_of(pid_file: Path, proc: Path = PROC) -> int | None:
    """Return the process that the file names, if it is an nginx master."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if title_of(pid, proc).startswith(MASTER) else None


def serving_workers(master: int, proc: Path = PROC) -> frozenset[int]:
    """Return the workers of a master that take new connections."""
    with suppress(OSError):
        pids = [int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal()]
        return frozenset(pid for pid in pids if _serves(pid, master, proc))
    return frozenset()


def _serves(pid: int, master: int, proc: Path) -> bool:
    stat = read_stat(pid, proc)
    if stat is None or stat.parent != master:
        return False
    title = title_of(pid, proc)
    return title.startswith(WORKER) and not title.startswith(LEAVING)


def ask_to_reload(master: int) -> bool:
    """Tell a master to read its configuration anew; False when it is gone."""
    try:
        os.kill(master, signal.SIGHUP)
    except ProcessLookupError:
        return False
    return True
