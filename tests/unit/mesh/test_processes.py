"""Processes are told apart by mark and start time, never by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatemesh_mesh.processes import (
    MARK_VARIABLE,
    ProcessId,
    describe,
    end_all,
    find_marked,
    identify,
    is_alive,
    parse_stat,
)


def stat_line(pid: int, parent: int, *, state: str = "S", start: int = 5) -> str:
    """Return a line as the kernel writes it, with a name made to confuse."""
    rest = " ".join(["0"] * 17)
    return f"{pid} (a) b (c)) {state} {parent} {rest} {start} 0 0"


def add(proc: Path, pid: int, parent: int = 1, *, mark: str = "", state: str = "S") -> None:
    """Put a process into a made-up /proc."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(stat_line(pid, parent, state=state))
    (folder / "environ").write_bytes(f"A=1\0{MARK_VARIABLE}={mark}\0B=2\0".encode())
    (folder / "cmdline").write_bytes(b"/usr/bin/thing\0-x\0")


def test_a_name_with_brackets_is_no_obstacle() -> None:
    """A process may call itself anything."""
    assert parse_stat(stat_line(4, 3, start=99)).start_ticks == 99
    assert parse_stat(stat_line(4, 3)).parent_pid == 3


def test_marked_processes_and_their_children_are_found(tmp_path: Path) -> None:
    """A child that wrote over its environment is found through its parent."""
    (tmp_path / "self").mkdir()
    add(tmp_path, 10, mark="ours")
    add(tmp_path, 11, 10, mark="")
    add(tmp_path, 12, 11, mark="")
    add(tmp_path, 20, mark="theirs")
    add(tmp_path, 30, mark="oursx")
    assert [process.pid for process in find_marked("ours", tmp_path)] == [10, 11, 12]


def test_a_zombie_is_gone(tmp_path: Path) -> None:
    """Process 1 of a container reaps late."""
    add(tmp_path, 10, mark="ours", state="Z")
    assert identify(10, tmp_path) is None
    assert find_marked("ours", tmp_path) == []


def test_a_number_given_to_another_process_is_not_ours(tmp_path: Path) -> None:
    """A recorded process is never confused with its successor."""
    add(tmp_path, 10)
    assert is_alive(ProcessId(10, 5), tmp_path)
    assert not is_alive(ProcessId(10, 4), tmp_path)
    assert not is_alive(ProcessId(11, 5), tmp_path)


def test_a_process_is_described_by_number_and_program(tmp_path: Path) -> None:
    """A person can recognise it."""
    add(tmp_path, 10)
    assert describe(ProcessId(10, 5), tmp_path) == "10 (thing)"
    assert describe(ProcessId(11, 5), tmp_path) == "11 (?)"


STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_stubborn_processes_are_killed() -> None:
    """What ignores SIGTERM ends all the same, and this process is spared."""
    environment = {**os.environ, MARK_VARIABLE: "test-stubborn"}
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], env=environment, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        found = find_marked("test-stubborn")
        assert [process.pid for process in found] == [child.pid]
        assert end_all(found, grace_s=0.0) == []
    assert child.returncode == -9
