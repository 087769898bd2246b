"""A real supervisord: nothing is left, whoever is killed, and however rudely."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatemesh_mesh.errors import AlreadyRunningError
from gatemesh_mesh.foreground import stop_everything
from gatemesh_mesh.processes import command_line, identify
from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import PATIENCE_S, Supervision
from gatemesh_mesh.waiting import wait_until

pytestmark = pytest.mark.integration
HOLDER = Path(__file__).with_name("holder_program.py")


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """Return a state folder that exists."""
    folder = StateFolder(tmp_path / "state")
    folder.create()
    return folder


@pytest.fixture
def holder(folder: StateFolder) -> Iterator[subprocess.Popen[bytes]]:
    """Run a starter in a process of its own; whatever it leaves is ended."""
    with subprocess.Popen([sys.executable, HOLDER, folder.root], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"running\n"
        try:
            yield process
        finally:
            process.kill()
            stop_everything(folder, SilentProgress())


def supervisord_pid(folder: StateFolder) -> int:
    """Return the number of the running supervisord."""
    return int((folder.supervisor / "supervisord.pid").read_text())


def test_the_end_of_the_starter_ends_everything(
    folder: StateFolder, holder: subprocess.Popen[bytes]
) -> None:
    """After kill -9 of the command line, `down` leaves nothing."""
    supervision = Supervision(folder)
    assert wait_until(lambda: len(supervision.survivors()) >= 4, 20)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    stop_everything(folder, SilentProgress())
    assert supervision.survivors() == []
    assert not folder.is_held()


def test_a_killed_supervisord_leaves_nothing_that_is_not_found(
    folder: StateFolder, holder: subprocess.Popen[bytes]
) -> None:
    """After kill -9 of supervisord too, its orphans are found by their mark."""
    supervision = Supervision(folder)
    pid = supervisord_pid(folder)
    os.kill(holder.pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    holder.wait()
    assert wait_until(lambda: identify(pid) is None, 20)
    assert supervision.survivors()
    assert stop_everything(folder, SilentProgress())
    assert supervision.survivors() == []


@pytest.mark.usefixtures("holder")
def test_down_asks_the_one_who_holds_the_folder(folder: StateFolder) -> None:
    """`down` in another terminal ends a running `up`, and a second `up` is refused before."""
    with pytest.raises(AlreadyRunningError), folder.hold():
        pass
    assert stop_everything(folder, SilentProgress())
    assert Supervision(folder).survivors() == []


@pytest.fixture
def supervision(folder: StateFolder) -> Iterator[Supervision]:
    """Run a supervisord with nothing in it."""
    supervision = Supervision(folder)
    supervision.start()
    yield supervision
    assert supervision.close() == []


def sleeper(
    folder: StateFolder, name: str, *, seconds: int = 600, restarts: bool = False
) -> ProgramSpec:
    """Return a program that only sleeps."""
    argv = ("/bin/sleep", str(seconds))
    return ProgramSpec(name, argv, folder.logs / f"{name}.log", restarts=restarts)


def test_programs_come_and_change_at_run_time(
    folder: StateFolder, supervision: Supervision
) -> None:
    """Engines are added to a running stack; those that run are not disturbed."""
    supervision.add([sleeper(folder, "one")])
    supervision.start_program("one")
    supervision.start_program("one")
    [one] = supervision.statuses()
    supervision.add([sleeper(folder, "two")])
    assert {status.name: status.pid for status in supervision.statuses()} == {
        "one": one.pid,
        "two": 0,
    }
    supervision.add([sleeper(folder, "one", seconds=700)])
    assert supervision.state_of("one") == "STOPPED"


def await_sleep(supervision: Supervision) -> None:
    """Wait until the program itself runs: between fork and exec SIGTERM gets lost."""

    def has_begun() -> bool:
        [one] = supervision.statuses()
        process = identify(one.pid)
        return process is not None and command_line(process)[0] == "/bin/sleep"

    assert wait_until(has_begun, 20)


def test_stopping_twice_is_harmless(folder: StateFolder, supervision: Supervision) -> None:
    """A repeated stop is no error."""
    supervision.add([sleeper(folder, "one")])
    supervision.start_program("one")
    await_sleep(supervision)
    assert supervision.stop_program("one")
    assert supervision.stop_program("one")


@pytest.mark.parametrize(("restarts", "state"), [(True, "RUNNING"), (False, "EXITED")])
def test_only_services_come_back_by_themselves(
    folder: StateFolder, supervision: Supervision, *, restarts: bool, state: str
) -> None:
    """A killed engine stays dead until the executor starts it."""
    supervision.add([sleeper(folder, "one", restarts=restarts)])
    supervision.start_program("one")
    assert wait_until(lambda: supervision.state_of("one") == "RUNNING", 20)
    [before] = supervision.statuses()
    os.kill(before.pid, signal.SIGKILL)

    def settled() -> bool:
        [now] = supervision.statuses()
        return now.state == state and now.pid != before.pid

    assert wait_until(settled, 20)


def test_passwords_are_asked_for(folder: StateFolder, supervision: Supervision) -> None:
    """Nobody who merely reaches the socket controls the programs."""
    assert supervision.answers()
    supervision.password = "wrong"
    assert not supervision.answers()
    supervision.password = folder.secrets()["supervisor"]
    assert folder.supervisor_socket.stat().st_mode & 0o077 == 0


def test_a_supervisord_that_does_not_answer_yet_is_ended_at_once(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C right after the start: it must not be waited for until patience ends."""
    supervision = Supervision(folder)

    def interrupted(condition: object, deadline_s: float) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gatemesh_mesh.supervision.wait_until", interrupted)
        with pytest.raises(KeyboardInterrupt):
            supervision.start()
    begun = time.monotonic()
    assert supervision.close() == []
    assert time.monotonic() - begun < PATIENCE_S / 3
    assert supervision.survivors() == []
