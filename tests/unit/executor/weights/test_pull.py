"""Running a pull command."""

import asyncio
import sys
from pathlib import Path

import pytest

from gatemesh_executor.weights.pull import (
    CappedLog,
    PullFailedError,
    PullOrder,
    fill_in,
    pull_environment,
    run_pull,
)


def order(tmp_path: Path, program: str, timeout_s: float = 30.0) -> PullOrder:
    """Return an order for a Python program."""
    argv = (sys.executable, "-c", program)
    return PullOrder(argv, tmp_path, tmp_path / "log", {"PATH": "/usr/bin:/bin"}, timeout_s)


async def test_it_writes_into_its_folder(tmp_path: Path) -> None:
    """The working directory; what it says is in the log."""
    await run_pull(order(tmp_path, "open('w', 'w').write('x'); print('done')"))
    assert (tmp_path / "w").read_text() == "x"
    assert (tmp_path / "log").read_text() == "done\n"


async def test_a_failure_names_code_and_log(tmp_path: Path) -> None:
    """The operator reads on there; the report quotes nothing of it."""
    with pytest.raises(PullFailedError, match=r"ended with code 3; see .*log") as caught:
        await run_pull(order(tmp_path, "print('token=secret'); raise SystemExit(3)"))
    assert "secret" not in str(caught.value)


async def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With its name."""
    missing = PullOrder(("no-such-command",), tmp_path, tmp_path / "log", {}, 5.0)
    with pytest.raises(PullFailedError, match="no-such-command: No such file"):
        await run_pull(missing)


async def test_past_its_time_it_is_ended_with_its_children(tmp_path: Path) -> None:
    """A child that holds the output would otherwise be waited for."""
    program = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "open('pid', 'w').write(str(child.pid)); time.sleep(600)"
    )
    with pytest.raises(PullFailedError, match="not done in 1 s"):
        await run_pull(order(tmp_path, program, timeout_s=1.0))
    pid = (tmp_path / "pid").read_text()
    async with asyncio.timeout(20):
        while lives(pid):  # noqa: ASYNC110 (processes send no events)
            await asyncio.sleep(0.02)


async def test_nothing_of_it_outlives_a_success(tmp_path: Path) -> None:
    """A child that ignores SIGTERM could write into the files once they are verified."""
    child = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "open('ready', 'w').close(); time.sleep(600)"
    )
    program = (
        "import os, subprocess, sys, time; null = subprocess.DEVNULL\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=null, stderr=null)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "while not os.path.exists('ready'): time.sleep(0.02)\n"
    )
    await run_pull(order(tmp_path, program))
    assert not lives((tmp_path / "pid").read_text())


def lives(pid: str) -> bool:
    """Return True while a process runs; a zombie does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_it_gets_few_variables(tmp_path: Path) -> None:
    """Our passwords stay here; what is named goes along."""
    ours = {"PATH": "/bin", "GATEMESH_AMQP_URL": "amqp://user:secret@h/", "TOKEN": "t", "X": "x"}
    assert pull_environment(ours, ("TOKEN", "ABSENT"), tmp_path, "m@1") == {
        "PATH": "/bin",
        "TOKEN": "t",
        "GATEMESH_WEIGHTS_FOLDER": str(tmp_path),
        "GATEMESH_MODEL_VERSION": "m@1",
    }


def test_places_are_filled_in(tmp_path: Path) -> None:
    """The folder and the version; nothing else is a place."""
    argv = fill_in(("get", "--to={folder}", "{model_version}", "{other}"), tmp_path, "m@1")
    assert argv == ("get", f"--to={tmp_path}", "m@1", "{other}")


def test_a_talkative_command_fills_no_disk() -> None:
    """The beginning and the end are kept."""
    log = CappedLog(limit_bytes=10, tail_bytes=5)
    for _ in range(1000):
        log.add(b"0123456789abc")
    assert log.content() == b"0123456789\n[12985 bytes left out]\n89abc"


def test_a_short_log_is_whole() -> None:
    """Nothing is said to be left out."""
    log = CappedLog()
    log.add(b"a")
    log.add(b"b")
    assert log.content() == b"ab"
