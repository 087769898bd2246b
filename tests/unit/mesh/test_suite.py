"""`./mesh test` runs every check, passes arguments on and keeps the exit code honest."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from gatemesh_mesh.suite import (
    SLOWEST_SHOWN,
    Check,
    pytest_commands,
    run_checks,
    run_tests,
    static_checks,
    with_sources,
)

EXIT = (sys.executable, "-c", "import sys; print('words'); sys.exit(int(sys.argv[1]))")


def test_every_tool_is_run(tmp_path: Path) -> None:
    """Format, lint, types and layers."""
    names = [check.name for check in static_checks(tmp_path)]
    assert names == ["ruff format", "ruff check", "mypy", "import-linter"]


def test_folders_without_sources_are_left_out(tmp_path: Path) -> None:
    """The type checker refuses an empty folder."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").touch()
    assert with_sources(tmp_path) == ("tests",)


def test_a_failed_check_is_shown_and_the_others_run(tmp_path: Path) -> None:
    """One run shows everything that is wrong."""
    console = Console(file=io.StringIO())
    checks = [Check("bad", (*EXIT, "1")), Check("good", (*EXIT, "0"))]
    assert run_checks(checks, tmp_path, console) == ["bad"]
    assert isinstance(console.file, io.StringIO)
    assert "words" in console.file.getvalue()


def test_fast_means_unit_and_contract(tmp_path: Path) -> None:
    """Named paths win, options do not; who says nothing gets two runs side by side."""
    for name in ("unit", "contract", "integration"):
        (tmp_path / "tests" / name).mkdir(parents=True)
    head = (sys.executable, "-m", "pytest", f"--durations={SLOWEST_SHOWN}")
    assert pytest_commands(tmp_path, [], fast=False) == [
        (*head, "-m", "real_engine"), (*head, "-m", "not real_engine"),
    ]  # fmt: skip
    assert pytest_commands(tmp_path, [], fast=False, real=False) == [
        (*head, "tests/unit"), (*head, "--ignore=tests/unit"),
    ]  # fmt: skip
    assert pytest_commands(tmp_path, ["-x"], fast=True) == [
        (*head, "tests/unit", "tests/contract", "-x")
    ]
    named = ["tests/integration::x"]
    assert pytest_commands(tmp_path, named, fast=True) == [(*head, *named)]
    assert pytest_commands(tmp_path, ["-x"], fast=False) == [(*head, "-x")]


@pytest.mark.parametrize(
    ("codes", "failed", "expected"),
    [
        ([0], [], 0),
        ([0], ["mypy"], 1),
        ([5], [], 5),
        ([2], ["mypy"], 2),
        ([1, 0], [], 1),
        ([0, 5], [], 5),
        ([0, 0], ["mypy"], 1),
    ],
)
def test_the_exit_code_is_honest(
    tmp_path: Path, codes: list[int], failed: list[str], expected: int
) -> None:
    """Passing tests do not hide a failed check, nor a run that went beside them."""
    console = Console(file=io.StringIO())
    commands = [(*EXIT, str(code)) for code in codes]
    assert run_tests(commands, tmp_path, failed, {}, console) == expected
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("words") == len(codes) - 1
