"""Whether this machine can run the real engine: what was found, and the limits, as data."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gatemesh_mesh.errors import MeshError

GIB = 1 << 30
MEMORY_NEEDED_BYTES = 7 * GIB
"""Two engines of 3.0 GiB each (measured, 1 GiB of it KV cache), and the stack beside them."""
INSTALL_NEEDED_BYTES = 6 * GIB
"""Peak of an install from nothing (measured: 3.7 GB unpacked, 0.6 GB of downloads, the model)."""
RUN_NEEDED_BYTES = 1 * GIB
"""What an installed engine still wants: the model, caches and logs."""
PYTHON_RANGE = ((3, 11), (3, 14))


class RealEngineUnavailableError(MeshError):
    """The real engine cannot run on this machine now; simulated engines can."""


@dataclass(frozen=True)
class Machine:
    """What matters of a machine."""

    system: str
    architecture: str
    python: tuple[int, int]
    cpu_flags: frozenset[str]
    free_memory_bytes: int
    free_disk_bytes: int


@dataclass(frozen=True)
class Need:
    """One demand on a machine: when it is met, and what to say when it is not."""

    is_met: Callable[[Machine], bool]
    reason: str
    cure: str


NEEDS = (
    Need(
        lambda machine: machine.system == "Linux",
        "the CPU build of vLLM runs on Linux only, this is {machine.system}",
        "run it in a Linux container or virtual machine, or use --sim",
    ),
    Need(
        lambda machine: PYTHON_RANGE[0] <= machine.python < PYTHON_RANGE[1],
        "the CPU build of vLLM needs Python 3.11, 3.12 or 3.13, this is {python}",
        "start ./mesh with one of those (GATEMESH_PYTHON), or use --sim",
    ),
    Need(
        lambda machine: machine.architecture in {"x86_64", "aarch64"},
        "no CPU build of vLLM exists for {machine.architecture}",
        "use --sim on this machine",
    ),
    Need(
        lambda machine: machine.architecture != "x86_64" or "avx2" in machine.cpu_flags,
        "this CPU has no AVX2, which the engine's kernels need",
        "use a machine with AVX2 (better AVX-512), or use --sim",
    ),
    Need(
        lambda machine: machine.free_memory_bytes >= MEMORY_NEEDED_BYTES,
        "two engines need {memory:.0f} GiB of free memory, {free_memory:.1f} GiB are free",
        "end other programs or raise the container's memory limit, or use --sim",
    ),
)


def check_machine(machine: Machine, *, disk_needed_bytes: int) -> None:
    """Pass a machine on which the engine can run.

    Raises:
        RealEngineUnavailableError: it cannot; says why and what to do.
    """
    facts = {
        "machine": machine,
        "python": ".".join(map(str, machine.python)),
        "memory": MEMORY_NEEDED_BYTES / GIB,
        "free_memory": machine.free_memory_bytes / GIB,
    }
    for need in NEEDS:
        if not need.is_met(machine):
            raise RealEngineUnavailableError(need.reason.format(**facts), need.cure)
    if machine.free_disk_bytes < disk_needed_bytes:
        raise RealEngineUnavailableError(
            f"the real engine needs {disk_needed_bytes / GIB:.0f} GiB of free disk, "
            f"{machine.free_disk_bytes / GIB:.1f} GiB are free",
            "free some space, or set GATEMESH_STATE to a folder on a larger disk, or use --sim",
        )


def look_at_machine(folder: Path) -> Machine:
    """Return what this machine offers; `folder` is where the engine would live."""
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        python=(sys.version_info.major, sys.version_info.minor),
        cpu_flags=parse_cpu_flags(_lines("/proc/cpuinfo")),
        free_memory_bytes=_free_memory_bytes(),
        free_disk_bytes=shutil.disk_usage(folder).free,
    )


def parse_cpu_flags(lines: Iterable[str]) -> frozenset[str]:
    """Return the features named in /proc/cpuinfo (of the first processor)."""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in {"flags", "Features"}:
            return frozenset(value.split())
    return frozenset()


def parse_memory(lines: Iterable[str]) -> Mapping[str, int]:
    """Return the bytes by name of /proc/meminfo."""
    pairs = (line.partition(":") for line in lines)
    return {name: int(value.split()[0]) * 1024 for name, _, value in pairs if value.strip()}


def pick_cores(available: Iterable[int], engines: int) -> list[int]:
    """Return one core per engine, each its own while they last.

    Two CPU engines on one core starve each other: one of them stands still while both are loaded.
    """
    cores = sorted(available)
    return [cores[number % len(cores)] for number in range(engines)]


def number_format(architecture: str, cpu_flags: frozenset[str]) -> str:
    """Return the format of weights and sums in which this CPU's engine is quick.

    Source: vLLM 0.32 on a CPU with AVX2 only makes 0.5 steps/s in bfloat16, 30 in float32.
    """
    slow = architecture == "x86_64" and "avx512f" not in cpu_flags
    return "float32" if slow else "bfloat16"


def usable_cores() -> set[int]:
    """Return the cores on which this process may run."""
    return os.sched_getaffinity(0)


def _free_memory_bytes() -> int:
    free = parse_memory(_lines("/proc/meminfo")).get("MemAvailable", 0)
    limit, used = _group_bytes("memory.max"), _group_bytes("memory.current")
    if limit is None or used is None:
        return free
    return min(free, limit - used)


def _group_bytes(name: str) -> int | None:
    content = "".join(_lines(f"/sys/fs/cgroup/{name}")).strip()
    return int(content) if content.isdigit() else None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
