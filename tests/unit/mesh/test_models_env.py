"""The environment of the shadow's models."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gatemesh_mesh import models_env
from gatemesh_mesh.engine_machine import RealEngineUnavailableError
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder


class Installer:
    """Notes what would be run; makes the interpreter, as a virtual environment does."""

    def __init__(self, folder: StateFolder, failing: str = "") -> None:
        self.folder = folder
        self.failing = failing
        self.ran: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str]) -> None:
        """Run one step."""
        self.ran.append(argv)
        if self.failing and self.failing in " ".join(argv):
            raise RealEngineUnavailableError("no network", "check it")
        python = models_env.layout_of(self.folder).python
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()


def test_it_is_installed_once(tmp_path: Path) -> None:
    """The verifier without its dependencies; the second call runs nothing."""
    folder = StateFolder(tmp_path)
    installer = Installer(folder)
    assert not models_env.is_installed(folder)
    models_env.ensure_installed(folder, "python3", SilentProgress(), run=installer)
    assert models_env.is_installed(folder)
    assert installer.ran[0][0] == "python3"
    assert "--no-deps" in installer.ran[-1]
    models_env.ensure_installed(folder, "python3", SilentProgress(), run=installer)
    assert len(installer.ran) == 3


def test_what_is_cut_off_is_not_taken_for_done(tmp_path: Path) -> None:
    """A step fails: the next call begins anew."""
    folder = StateFolder(tmp_path)
    with pytest.raises(RealEngineUnavailableError):
        models_env.ensure_installed(
            folder, "python3", SilentProgress(), run=Installer(folder, "--no-deps")
        )
    assert not models_env.is_installed(folder)


def test_other_versions_are_installed_anew(tmp_path: Path) -> None:
    """The stamp holds what it was done for."""
    folder = StateFolder(tmp_path)
    models_env.ensure_installed(folder, "python3", SilentProgress(), run=Installer(folder))
    models_env.layout_of(folder).stamp.write_text('{"extra": "older"}')
    assert not models_env.is_installed(folder)


def test_wanted_names_the_extra() -> None:
    """A change of its packages is another installation."""
    assert "sentence-transformers" in str(models_env.wanted()["extra"])


def test_the_present_sources_are_used() -> None:
    """Not those that were installed."""
    paths = models_env.environment_of()["PYTHONPATH"].split(":")
    assert all((Path(path)).is_dir() for path in paths)
