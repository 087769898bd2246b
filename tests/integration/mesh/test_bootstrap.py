"""`./mesh` itself, with a Python that only pretends to install."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).resolve().parents[3]

# Answers for Python: makes environments of itself, installs as told, and shows what it was asked.
PRETENDER = f"""#!/bin/sh
case "$*" in
*ensurepip*) exit "${{NO_VENV:-0}}" ;;
"-m venv"*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
"-m pip"*) echo install >>"$JOURNAL"; echo "$PIP_SAYS"; exit "${{PIP_CODE:-0}}" ;;
"-m gatemesh_mesh"*) shift 2; echo "asked: $*" ;;
*) exec {sys.executable} "$@" ;;
esac
"""


@dataclass
class Clone:
    """A folder that holds what the bootstrapper reads."""

    root: Path
    journal: Path

    def run(self, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        """Run `./mesh`."""
        environment = {
            "PATH": os.defpath,
            "GATEMESH_PYTHON": str(self.root / "python"),
            "JOURNAL": str(self.journal),
        }
        return subprocess.run(
            [self.root / "mesh", *arguments],
            env=environment | settings,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def installs(self) -> int:
        """Count the installations."""
        return len(self.journal.read_text().split()) if self.journal.exists() else 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """Return a folder as `git clone` leaves it."""
    for name in ("mesh", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    pretender = tmp_path / "python"
    pretender.write_text(PRETENDER)
    pretender.chmod(0o755)
    return Clone(tmp_path, tmp_path / "journal")


def test_it_installs_once_and_hands_over(clone: Clone) -> None:
    """A second run is quick, and arguments arrive as they were given."""
    first = clone.run("up", "--engines", "2 3")
    assert first.stdout == "asked: up --engines 2 3\n"
    assert "Installing" in first.stderr
    second = clone.run("status")
    assert second.stdout == "asked: status\n"
    assert second.stderr == ""
    assert clone.installs() == 1


def test_tests_need_more_and_everything_else_needs_less(clone: Clone) -> None:
    """`test` after `up` installs the tools; `up` after `test` installs nothing."""
    clone.run("up")
    clone.run("test")
    clone.run("up")
    assert clone.installs() == 2


def test_new_dependencies_are_installed(clone: Clone) -> None:
    """A pull that changes the dependencies needs no thought."""
    clone.run("up")
    with (clone.root / "constraints.txt").open("a") as file:
        file.write("new==1\n")
    clone.run("up")
    assert clone.installs() == 2


def test_a_moved_clone_makes_its_environment_anew(clone: Clone) -> None:
    """An environment holds its own path."""
    clone.run("up")
    moved = Clone(clone.root.with_name("moved"), clone.root.with_name("journal"))
    clone.root.rename(moved.root)
    assert moved.run("up").returncode == 0
    assert moved.installs() == 1
    assert (moved.root / ".venv" / ".gatemesh-root").read_text() == f"{moved.root}\n"


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("Temporary failure in name resolution", "cannot be reached"),
        ("ERROR: No matching distribution found for x", "cannot be reached"),
        ("something new", "something new"),
    ],
)
def test_a_failed_installation_is_explained_and_tried_again(
    clone: Clone, words: str, meaning: str
) -> None:
    """A person reads what is wrong and what to do; nothing half made counts as installed."""
    result = clone.run("up", PIP_CODE="1", PIP_SAYS=words)
    assert result.returncode == 1
    assert meaning in result.stderr
    assert "what to do:" in result.stderr
    assert clone.run("up").stdout == "asked: up\n"


def test_a_python_without_venv_is_explained(clone: Clone) -> None:
    """A person reads which package is missing, with or without the right to install it."""
    tools = clone.root / "tools"
    tools.mkdir()
    apt = tools / "apt-get"
    apt.write_text("#!/bin/sh\necho 'Temporary failure resolving x'\nexit 100\n")
    apt.chmod(0o755)
    result = clone.run("up", NO_VENV="1", PATH=f"{tools}:{os.defpath}")
    assert result.returncode == 1
    assert "-venv" in result.stderr
    assert "what to do:" in result.stderr
    assert clone.installs() == 0
