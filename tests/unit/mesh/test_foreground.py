"""What people see of a stack in the foreground, and how it is asked to end."""

import os
import signal
from pathlib import Path

import pytest

from gatemesh_mesh.foreground import changes, stop_everything, stop_requests
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder


def test_changes_are_told_and_the_first_look_is_not() -> None:
    """A crash is seen at once; a quiet stack says nothing."""
    running = {"agent": ("RUNNING", 7)}
    assert changes({}, running) == []
    assert changes(running, running) == []
    assert changes(running, {"agent": ("RUNNING", 8)}) == ["agent: running, process 8"]
    assert changes(running, {"agent": ("EXITED", 0)}) == ["agent: exited"]


def receive(number: signal.Signals) -> None:
    """Get a signal while stop requests are heard."""
    with stop_requests():
        os.kill(os.getpid(), number)
        signal.pause()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_every_way_to_ask_ends_in_the_same_place(number: signal.Signals) -> None:
    """A closed terminal stops the stack as Ctrl-C does, and handlers are put back."""
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        receive(number)
    assert signal.getsignal(number) == before


def test_nothing_to_stop(tmp_path: Path) -> None:
    """`down` on a fresh clone makes no folder and is no error."""
    folder = StateFolder(tmp_path / "state")
    assert not stop_everything(folder, SilentProgress())
    assert not folder.root.exists()
    folder.create()
    assert not stop_everything(folder, SilentProgress())
