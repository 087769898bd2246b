"""`./mesh test`: formatter, linter, types, import contracts, then all tests."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

FAILED_CHECKS_VARIABLE = "GATEMESH_FAILED_CHECKS"
"""Names of the checks that failed before pytest ran; the test session repeats them at its end."""

REAL_ENGINE_VARIABLE = "GATEMESH_REAL_ENGINE_UNAVAILABLE"
"""Why the tests of the real engine are skipped."""

MODELS_VARIABLE = "GATEMESH_MODELS_UNAVAILABLE"
"""Why the tests of the shadow's models are skipped."""

COMPOSE_VARIABLE = "GATEMESH_COMPOSE"
"""Set to 1, the tests of `compose.yaml` run; they need a Docker engine."""

SLOWEST_SHOWN = 25
"""Tests whose time is shown at the end."""

SOURCE_FOLDERS = ("libs", "services", "deploy", "tests", "benchmarks", "examples", "migrations")
FAST_FOLDERS = ("tests/unit", "tests/contract")


@dataclass(frozen=True)
class Check:
    """A static check: its name and its command."""

    name: str
    argv: tuple[str, ...]


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
            check.argv, cwd=repository, capture_output=True, text=True, check=False
        )
    if result.returncode == 0:
        console.print(f"[green]passed[/]  {check.name}")
        return True
    console.print(f"[red]failed[/]  {check.name}")
    console.print(
        (result.stdout + result.stderr).rstrip(), markup=False, highlight=False, soft_wrap=True
    )
    return False


def pytest_arguments(repository: Path, arguments: Sequence[str], *, fast: bool) -> list[str]:
    """Return the command line of the test run; paths in `arguments` win over `fast`.

    Without arguments two processes run the tests, one of them all that need the machine.
    """
    named = any((repository / part.split("::")[0]).exists() for part in arguments)
    folders = [name for name in FAST_FOLDERS if (repository / name).is_dir()]
    return [
        *(sys.executable, "-m", "pytest", f"--durations={SLOWEST_SHOWN}"),
        *(() if arguments else ("--numprocesses=2", "--dist=loadgroup")),
        *(folders if fast and not named else ()),
        *arguments,
    ]


def run_tests(
    command: Sequence[str], repository: Path, failed: Sequence[str], facts: Mapping[str, str]
) -> int:
    """Run pytest to its end and return the exit code of the whole suite."""
    environment = {**os.environ, **facts}
    if failed:
        environment[FAILED_CHECKS_VARIABLE] = ", ".join(failed)
    result = subprocess.run(command, cwd=repository, env=environment, check=False)
    return result.returncode or (1 if failed else 0)
