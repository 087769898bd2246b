"""`./mesh test` runs every check, passes arguments on and keeps the exit code honest."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.conftest import BROKER_VARIABLE, bench_source, part_of

from gatemesh_mesh.suite import (
    PARTS,
    SLOWEST_SHOWN,
    Check,
    broker_version,
    faults_command,
    faults_facts,
    pytest_command,
    run_all_tests,
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
    """Named paths win, options do not."""
    for name in ("unit", "contract", "integration"):
        (tmp_path / "tests" / name).mkdir(parents=True)
    head = (sys.executable, "-m", "pytest", f"--durations={SLOWEST_SHOWN}")
    assert pytest_command(tmp_path, ["-x"], fast=True) == (
        *head, "tests/unit", "tests/contract", "-x",
    )  # fmt: skip
    named = ["tests/integration::x"]
    assert pytest_command(tmp_path, named, fast=True) == (*head, *named)
    assert pytest_command(tmp_path, ["-x"], fast=False) == (*head, "-x")


def test_the_fault_suite_is_played_whole(tmp_path: Path) -> None:
    """Every folder and file that it names is there, and arguments go to pytest."""
    command = faults_command(["-k", "broker"])
    repository = Path(__file__).parents[3]
    named = [part for part in command if part.startswith("tests/")]
    assert len(named) == 4
    assert all((repository / part).exists() for part in named)
    assert command[-2:] == ("-k", "broker")
    assert "GATEMESH_FAULTS_PAGE" not in faults_facts(None)
    page = tmp_path / "page.md"
    assert faults_facts(page) == {
        "GATEMESH_FAULTS": "1",
        "GATEMESH_STATE_MACHINE_STEPS": "100000",
        "GATEMESH_FAULTS_PAGE": str(page),
    }


@pytest.mark.parametrize(
    ("codes", "failed", "expected"),
    [
        ((0, 0), [], 0),
        ((1, 0), [], 1),
        ((0, 5), [], 5),
        ((3, 5), [], 3),
        ((0, 0), ["mypy"], 1),
        ((2, 0), ["mypy"], 2),
    ],
)
def test_the_exit_code_is_honest(
    tmp_path: Path, codes: tuple[int, int], failed: list[str], expected: int
) -> None:
    """Passing tests do not hide a failed check, nor the failure of another part."""
    console = Console(file=io.StringIO())
    early, late = ((*EXIT, str(code)) for code in codes)
    assert run_all_tests((early, late), tmp_path, lambda: failed, dict, console) == expected
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("words") == 1
    assert run_tests(late, tmp_path, failed, {}) == (codes[1] or (1 if failed else 0))


def test_the_second_part_waits_for_what_it_needs(tmp_path: Path) -> None:
    """The first runs meanwhile and ends before; only the second is told what is missing."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    wait = (
        "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(.01)"
    )
    first = "import pathlib, sys; [pathlib.Path(name).touch() for name in sys.argv[1:]]"
    early = (sys.executable, "-c", first, str(begun), str(ended))
    told = "import os, sys; sys.exit(os.environ['WHY'] != 'x' or not os.path.exists(sys.argv[1]))"
    late = (sys.executable, "-c", told, str(ended))

    def prepare() -> dict[str, str]:
        subprocess.run([sys.executable, "-c", wait, str(begun)], check=True, timeout=60)
        return {"WHY": "x"}

    console = Console(file=io.StringIO())
    assert run_all_tests((early, late), tmp_path, list, prepare, console) == 0


def test_every_test_is_in_one_part(pytestconfig: pytest.Config) -> None:
    """What needs the real engine is not in the first ones."""
    root = pytestconfig.rootpath
    folders = ("unit/ctl", "integration/mesh", "integration/real_engine", "acceptance")
    seen = []
    for command in PARTS:
        argv = (*command, "--collect-only", "-q", "-p", "no:cacheprovider")
        argv += tuple(f"tests/{folder}" for folder in folders)
        result = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True)
        files = {line.split("::")[0] for line in result.stdout.splitlines() if "::" in line}
        seen.append({part_of(file) for file in files})
    assert seen == [{"early"}, {"stacks"}, {"engines"}, {"fleet"}]
    marked = [
        path.relative_to(root).as_posix()
        for path in (root / "tests").rglob("test_*.py")
        if re.search(r"^pytestmark = .*real_engine", path.read_text(), re.MULTILINE)
    ]
    assert {part_of(file) for file in marked} == {"engines", "fleet"}


@pytest.mark.parametrize("version", ["3", "4", "4.3", "3.13.7"])
def test_a_version_of_the_broker_is_a_number(version: str) -> None:
    """As the tags of upstream's images begin."""
    assert broker_version(version) == version


@pytest.mark.parametrize("version", ["", "latest", "4-management", "4.", "v4", "4.3.0.1"])
def test_a_wrong_version_is_refused_with_examples(version: str) -> None:
    """Before an image of that name is looked for."""
    with pytest.raises(ValueError, match=r"give one such as 3, 4 or 4\.3"):
        broker_version(version)


@pytest.mark.parametrize(
    ("version", "missing", "words"),
    [
        (None, None, "native, save what GATEMESH_TEST_AMQP_URL names"),
        ("4", None, "containers, RabbitMQ 4 and PostgreSQL 17"),
        ("4", "no socket", "native, for no Docker engine answers: no socket"),
    ],
)
def test_a_run_says_which_broker_it_used(
    version: str | None, missing: str | None, words: str
) -> None:
    """Nobody takes a run on native nodes for one in containers."""
    assert bench_source(version, missing, {BROKER_VARIABLE: "amqp://"}) == words
    if version is None:
        assert bench_source(None, None, {}) == "native"
