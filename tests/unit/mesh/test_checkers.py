"""Programs that only tests run are fetched where they are missing."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gatemesh_mesh import checkers
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.progress import SilentProgress

NO_PATH = "/nowhere"


class Notes(SilentProgress):
    """Keeps what is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        """Keep one fact."""
        self.told.append(text)


def an_archive(folder: Path) -> Path:
    """Make a package of one program, as Debian's are built."""
    root = folder / "package"
    (root / "DEBIAN").mkdir(parents=True)
    control = "Package: prometheus\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\n"
    (root / "DEBIAN" / "control").write_text(f"{control}Description: x\n")
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "usr" / "bin" / "promtool").write_text("#!/bin/sh\n")
    archive = folder / "prometheus_1_all.deb"
    subprocess.run(["dpkg-deb", "-b", root, archive], check=True, capture_output=True)
    return archive


def test_a_package_is_unpacked_and_its_archive_removed(tmp_path: Path) -> None:
    """Nothing of it is installed, so no server of it starts."""
    archive = an_archive(tmp_path)
    download = ("sh", "-c", f"cp {archive} $0_1_all.deb")
    checkers.unpack("prometheus", tmp_path / "to", (download, ("dpkg-deb", "-x")))
    assert (tmp_path / "to" / "usr" / "bin" / "promtool").exists()
    assert list((tmp_path / "to").glob("*.deb")) == []


def test_what_was_fetched_is_used_again(tmp_path: Path) -> None:
    """The second run fetches nothing: there is no such package."""
    program = tmp_path / "usr" / "bin" / "promtool"
    program.parent.mkdir(parents=True)
    program.touch()
    facts = checkers.promtool_facts(tmp_path, SilentProgress(), "no-such-package")
    assert facts == {"GATEMESH_PROMTOOL": str(program)}


def test_a_program_of_the_system_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody fetches what is there."""
    program = tmp_path / "promtool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = checkers.promtool_facts(tmp_path / "to", SilentProgress(), "no-such-package")
    assert facts == {"GATEMESH_PROMTOOL": str(program)}


def test_where_it_cannot_be_had_tests_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No package tool, no variable."""
    monkeypatch.setenv("PATH", NO_PATH)
    assert checkers.promtool_facts(tmp_path, SilentProgress()) == {}


@pytest.mark.parametrize("given", ["variable", "path"])
def test_a_browser_that_is_there_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """By its name or on the path."""
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if given == "path" else NO_PATH)
    monkeypatch.setenv(checkers.BROWSER_VARIABLE, str(program) if given == "variable" else "")
    progress = Notes()
    checkers.ensure_browser(progress)
    assert progress.told == []


def test_a_browser_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on without its tests."""

    def refuse(_package: str, _progress: object, alternative: str) -> None:
        raise MeshError("chromium is not installed, and installing it needs root", alternative)

    monkeypatch.setattr(checkers, "install_package", refuse)
    monkeypatch.setenv(checkers.BROWSER_VARIABLE, "")
    progress = Notes()
    none: Sequence[str] = ("no-such-browser",)
    checkers.ensure_browser(progress, none)
    assert progress.told == [
        "the console's tests in a browser are skipped: "
        "chromium is not installed, and installing it needs root"
    ]
