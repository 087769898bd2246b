"""`./mesh test`: formatter, linter, types, import contracts, then all tests."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import Console

FAILED_CHECKS_VARIABLE = "GATEMESH_FAILED_CHECKS"
"""Names of the checks that failed before pytest ran; the test session repeats them at its end."""

REAL_ENGINE_VARIABLE = "GATEMESH_REAL_ENGINE_UNAVAILABLE"
"""Why the tests of the real engine are skipped."""

MODELS_VARIABLE = "GATEMESH_MODELS_UNAVAILABLE"
"""Why the tests of the shadow's models are skipped."""

BALANCERS_VARIABLE = "GATEMESH_BALANCERS_UNAVAILABLE"
"""Why the tests of load balancers are skipped."""

COMPOSE_VARIABLE = "GATEMESH_COMPOSE"
"""Set to 1, the tests of `compose.yaml` run; they need a Docker engine."""

CONTAINERS_VARIABLE = "GATEMESH_TEST_CONTAINERS"
"""Set to a version of RabbitMQ, the tests' broker and database come from containers."""

FAULTS_VARIABLE = "GATEMESH_FAULTS"
"""Set to 1, the fault suite plays its long scenarios, too."""

FAULTS_PAGE_VARIABLE = "GATEMESH_FAULTS_PAGE"
"""The page that the table of the fault suite is written into."""

STEPS_VARIABLE = "GATEMESH_STATE_MACHINE_STEPS"
"""How many steps the state machine of the decisions takes."""

STATE_MACHINE_STEPS = 100_000
STATE_MACHINE = "tests/unit/health_manager/test_state_machine.py"
FAULTS_FOLDER = "tests/faults"
CLEAN_TRAFFIC = ("tests/acceptance/test_clean.py", "tests/acceptance/test_real_engine.py")
"""What asks for more under `--faults` than CI has time for."""

VERSION = re.compile(r"\d+(\.\d+){0,2}")

BEHIND = ("nice", "-n", "10")
"""Checks run beside tests that have deadlines."""

SLOWEST_SHOWN = 25
"""Tests whose time is shown at the end."""

SOURCE_FOLDERS = ("libs", "services", "deploy", "tests", "benchmarks", "examples", "migrations")
FAST_FOLDERS = ("tests/unit", "tests/contract")
PYTEST = (sys.executable, "-m", "pytest", f"--durations={SLOWEST_SHOWN}")
FILES_AT_ONCE = ("--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder")
"""Each of the two workers has a broker, a database and a real engine of its own."""
PARTS = (
    (*PYTEST, "--part=early", *FILES_AT_ONCE),
    (*PYTEST, "--part=stacks", *FILES_AT_ONCE),
    (*PYTEST, "--part=engines", *FILES_AT_ONCE),
    (*PYTEST, "--part=fleet"),
)
"""All tests, in runs one after the other; tests/conftest.py says which are in which."""


@dataclass(frozen=True)
class Check:
    """A static check: its name and its command."""

    name: str
    argv: tuple[str, ...]


def broker_version(text: str) -> str:
    """Return a version as tags of images name it.

    Raises:
        ValueError: it is none, such as `latest`.
    """
    if not VERSION.fullmatch(text):
        raise ValueError(f"{text!r} is no version of RabbitMQ; give one such as 3, 4 or 4.3")
    return text


def static_checks(repository: Path) -> list[Check]:
    """Return the checks that run before the tests."""
    python = (sys.executable, "-m")
    return [
        Check("ruff format", (*python, "ruff", "format", "--check", "--quiet", ".")),
        Check("ruff check", (*python, "ruff", "check", "--quiet", ".")),
        Check("mypy", (*python, "mypy", *with_sources(repository))),
        Check("import-linter", (str(Path(sys.executable).parent / "lint-imports"),)),
    ]


def with_sources(repository: Path, folders: Sequence[str] = SOURCE_FOLDERS) -> tuple[str, ...]:
    """Return the folders that hold Python files."""
    return tuple(
        folder for folder in folders if next((repository / folder).rglob("*.py"), None) is not None
    )


def run_checks(checks: Sequence[Check], repository: Path, console: Console) -> list[str]:
    """Run every check, show the output of those that fail, and return their names."""
    return [check.name for check in checks if not _passes(check, repository, console)]


def _passes(check: Check, repository: Path, console: Console) -> bool:
    with console.status(f"{check.name} ..."):
        result = subprocess.run(
            (*BEHIND, *check.argv), cwd=repository, capture_output=True, text=True, check=False
        )
    if result.returncode == 0:
        console.print(f"[green]passed[/]  {check.name}")
        return True
    console.print(f"[red]failed[/]  {check.name}")
    console.print(
        (result.stdout + result.stderr).rstrip(), markup=False, highlight=False, soft_wrap=True
    )
    return False


def pytest_command(repository: Path, arguments: Sequence[str], *, fast: bool) -> tuple[str, ...]:
    """Return the command line of a test run; paths in `arguments` win over `fast`."""
    named = any((repository / part.split("::")[0]).exists() for part in arguments)
    folders = [name for name in FAST_FOLDERS if (repository / name).is_dir()]
    return (*PYTEST, *(folders if fast and not named else ()), *arguments)


def faults_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of the fault suite, with the other tests that have a long form."""
    return (*PYTEST, "--timeout=1800", FAULTS_FOLDER, STATE_MACHINE, *CLEAN_TRAFFIC, *arguments)


def faults_facts(page: Path | None) -> dict[str, str]:
    """Return the variables by which the fault suite is played whole."""
    facts = {FAULTS_VARIABLE: "1", STEPS_VARIABLE: str(STATE_MACHINE_STEPS)}
    return facts | ({FAULTS_PAGE_VARIABLE: str(page.resolve())} if page else {})


def run_tests(
    command: Sequence[str],
    repository: Path,
    failed: Sequence[str],
    facts: Mapping[str, str],
) -> int:
    """Run one pytest to its end and return the exit code of the whole suite."""
    code = subprocess.run(
        command, cwd=repository, env=environment_of(failed, facts), check=False
    ).returncode
    return code or (1 if failed else 0)


def run_all_tests(
    commands: Sequence[Sequence[str]],
    repository: Path,
    check: Callable[[], Sequence[str]],
    prepare: Callable[[], Mapping[str, str]],
    console: Console,
) -> int:
    """Run all parts and return the exit code of the whole suite.

    The first one runs while the checks do, which name those that failed, and while everything is
    prepared that the others need. They do not overlap: beside real engines on two cores, what has
    a deadline misses it.
    """
    early, *others = commands
    with _Beside(early, repository, environment_of((), {})) as beside:
        failed, facts = check(), prepare()
        codes = [beside.show(console)]
    codes += [run_tests(command, repository, failed, facts) for command in others]
    return next((code for code in codes if code), 1 if failed else 0)


def environment_of(failed: Sequence[str], facts: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a test run."""
    told = {FAILED_CHECKS_VARIABLE: ", ".join(failed)} if failed else {}
    return {**os.environ, **facts, **told}


class _Beside:
    """A command whose output is kept until somebody wants to see it."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._command = command
        self._folder = folder
        self._environment = environment

    def __enter__(self) -> Self:
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            env=self._environment,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._output.close()

    def show(self, console: Console) -> int:
        """Wait for the end, show all of the output, and return the exit code."""
        code = self._process.wait()
        self._output.seek(0)
        text = self._output.read().decode(errors="replace").rstrip()
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        return code
