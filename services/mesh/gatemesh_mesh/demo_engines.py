"""The engines of the demo: real ones where they can run, simulated ones else."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from gatemesh_mesh.engine_machine import pick_cores, usable_cores
from gatemesh_mesh.plan import Engine, engine_program, simulated_engines
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.progress import Progress
from gatemesh_mesh.real_engine import (
    ENGINE_VERSION,
    MODEL_NAME,
    EngineLayout,
    EngineOptions,
    RealEngineUnavailableError,
    engine_command,
    ensure_installed,
)
from gatemesh_mesh.stack import MakeEngines
from gatemesh_mesh.state import StateFolder

SIMULATED_MODEL = "sim"
LONGEST_SOCKET_BYTES = 100


def choose_engines(
    folder: StateFolder,
    progress: Progress,
    *,
    simulated: bool,
    install: Callable[[StateFolder, Progress], EngineLayout] = ensure_installed,
) -> tuple[MakeEngines, str]:
    """Return what makes the engines, and the name under which they serve their model.

    A machine that cannot run the real engine gets simulated ones, and is told why.
    """
    if not simulated:
        try:
            layout = install(folder, progress)
        except RealEngineUnavailableError as error:
            progress.note(f"The real engine cannot run here: {error}")
            progress.note("The demo goes on with simulated engines.")
        else:
            return real_engines(layout), MODEL_NAME
    return simulated_engines, SIMULATED_MODEL


def real_engines(layout: EngineLayout, number_format: str | None = None) -> MakeEngines:
    """Return what makes one vLLM server per port, each bound to a core of its own.

    Without a number format they compute in what is quick on this machine.
    """

    def make(folder: StateFolder, ports: Sequence[int]) -> list[Engine]:
        cores = pick_cores(usable_cores(), len(ports))
        return [
            real_engine(folder, layout, f"engine-{number}", port, core, number_format=number_format)
            for number, (port, core) in enumerate(zip(ports, cores, strict=True))
        ]

    return make


def figures_socket(folder: StateFolder) -> Path | None:
    """Return where the agent receives exact figures; None where the path is too long for one."""
    path = folder.root / "figures.sock"
    return path if len(os.fsencode(path)) <= LONGEST_SOCKET_BYTES else None


def real_engine(
    folder: StateFolder,
    layout: EngineLayout,
    name: str,
    port: int,
    core: int,
    *,
    number_format: str | None = None,
) -> Engine:
    """Return one vLLM server that follows its own drill file."""
    drill_file = folder.root / "drills" / f"{name}.json"
    options = EngineOptions(
        port,
        core,
        chaos_file=drill_file,
        number_format=number_format,
        plugin_socket=figures_socket(folder),
    )
    command = engine_command(layout, options)
    program = engine_program(folder, name, command.argv, command.environment)
    version = f"{MODEL_NAME}-vllm-{ENGINE_VERSION}"
    return Engine(
        name, f"http://{LOOPBACK}:{port}", program, model_version=version, is_simulated=False
    )
