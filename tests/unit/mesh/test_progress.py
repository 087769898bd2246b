"""Steps leave one line each, also when they fail."""

import io

import pytest
from rich.console import Console

from gatemesh_mesh.progress import ConsoleProgress, SilentProgress


def test_a_finished_step_leaves_its_title() -> None:
    """A log file shows what was done."""
    console = Console(file=io.StringIO())
    with ConsoleProgress(console).step("Starting"):
        pass
    ConsoleProgress(console).note("[fact]")
    assert isinstance(console.file, io.StringIO)
    first, second = console.file.getvalue().splitlines()
    assert first.startswith("done")
    assert "Starting" in first
    assert second == "[fact]"


def test_a_failed_step_says_so_and_raises() -> None:
    """The error still reaches whoever handles it."""
    console = Console(file=io.StringIO())
    with pytest.raises(KeyError), ConsoleProgress(console).step("Starting"):
        raise KeyError
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith("failed")


def test_silence() -> None:
    """Fixtures print nothing."""
    with SilentProgress().step("x"):
        SilentProgress().note("y")
