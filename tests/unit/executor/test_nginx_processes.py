"""Processes of nginx, from a folder like /proc."""

import os
from pathlib import Path

import pytest

from gatemesh_executor.balancers.nginx_processes import (
    ask_to_reload,
    master_of,
    serving_workers,
    title_of,
)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Give a master with two workers that serve, one that leaves, and strangers."""
    processes = (
        (10, 1, "nginx: master process nginx -c n.conf"),
        (11, 10, "nginx: worker process"),
        (12, 10, "nginx: worker process"),
        (13, 10, "nginx: worker process is shutting down"),
        (14, 10, "nginx: cache manager process"),
        (20, 1, "nginx: worker process"),
        (21, 1, "sleep 10"),
    )
    for pid, parent, title in processes:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_bytes(title.replace(" ", "\0", 1).encode() + b"\0")
        (folder / "stat").write_text(f"{pid} (nginx) S {parent} {pid} {pid} 0")
    (tmp_path / "self").mkdir()
    return tmp_path


def test_only_its_own_workers_that_stay_are_counted(proc: Path) -> None:
    """One that shuts down takes no new connection."""
    assert serving_workers(10, proc) == {11, 12}
    assert serving_workers(99, proc) == frozenset()


def test_a_number_of_something_else_is_no_master(proc: Path, tmp_path: Path) -> None:
    """After a crash the number may be anybody's; a signal would hit a stranger."""
    file = tmp_path / "pid"
    for text, found in (("10\n", 10), ("21", None), ("99", None), ("", None), ("x", None)):
        file.write_text(text)
        assert master_of(file, proc) == found
    assert master_of(tmp_path / "none", proc) is None


def test_a_process_that_is_gone_has_no_title(proc: Path) -> None:
    """It ended between two looks."""
    assert title_of(99, proc) == ""
    assert title_of(21, proc) == "sleep 10"


def test_a_master_that_is_gone_is_told() -> None:
    """Its number is nobody's."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    assert not ask_to_reload(child)
