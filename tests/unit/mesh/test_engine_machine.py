"""Whether a machine can run the real engine, and what it is told when it cannot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatemesh_mesh.engine_machine import (
    GIB,
    MEMORY_NEEDED_BYTES,
    Machine,
    RealEngineUnavailableError,
    check_machine,
    look_at_machine,
    number_format,
    parse_cpu_flags,
    parse_memory,
    pick_cores,
    usable_cores,
)

GOOD = Machine("Linux", "x86_64", (3, 11), frozenset({"avx2"}), MEMORY_NEEDED_BYTES, 5 * GIB)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="at-every-limit"),
        pytest.param({"python": (3, 13)}, id="newest-python"),
        pytest.param({"architecture": "aarch64", "cpu_flags": frozenset()}, id="arm"),
    ],
)
def test_a_machine_that_has_what_is_needed_passes(changes: dict[str, Any]) -> None:
    """Also when it has not a byte more."""
    check_machine(replace(GOOD, **changes), disk_needed_bytes=5 * GIB)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"system": "Darwin"}, "Linux only, this is Darwin", id="system"),
        pytest.param({"python": (3, 10)}, r"this is 3\.10", id="python-too-old"),
        pytest.param({"python": (3, 14)}, r"this is 3\.14", id="python-too-new"),
        pytest.param({"architecture": "riscv64"}, "riscv64", id="architecture"),
        pytest.param({"cpu_flags": frozenset({"avx"})}, "AVX2", id="cpu"),
        pytest.param({"free_memory_bytes": MEMORY_NEEDED_BYTES - 1}, "free memory", id="memory"),
        pytest.param({"free_disk_bytes": 5 * GIB - 1}, "5 GiB of free disk", id="disk"),
    ],
)
def test_what_is_missing_is_named_with_the_way_out(changes: dict[str, Any], reason: str) -> None:
    """One past each limit; the simulated engines are always a way out."""
    with pytest.raises(RealEngineUnavailableError, match=reason) as raised:
        check_machine(replace(GOOD, **changes), disk_needed_bytes=5 * GIB)
    assert "--sim" in raised.value.cure


def test_this_machine_is_described(tmp_path: Path) -> None:
    """Nothing of it is unknown on Linux."""
    machine = look_at_machine(tmp_path)
    assert machine.free_disk_bytes > 0
    assert machine.free_memory_bytes > 0
    assert machine.cpu_flags


@pytest.mark.parametrize("name", ["flags", "Features"])
def test_cpu_features_are_read(name: str) -> None:
    """x86 and ARM kernels use different words."""
    assert parse_cpu_flags(["processor : 0", f"{name}\t: avx avx2"]) == {"avx", "avx2"}


def test_unknown_cpu_features_are_none() -> None:
    """No file, no features."""
    assert parse_cpu_flags([]) == frozenset()


def test_memory_is_read_in_bytes() -> None:
    """The kernel counts in kB."""
    assert (
        parse_memory(["MemAvailable:  10 kB", "HugePages_Total:  0", ""])["MemAvailable"] == 10_240
    )


@pytest.mark.parametrize(
    ("available", "expected"), [({3, 1}, [1, 3, 1]), ({0, 1, 2, 3}, [0, 1, 2]), ({5}, [5, 5, 5])]
)
def test_engines_share_cores_only_when_they_run_out(
    available: set[int], expected: list[int]
) -> None:
    """Two engines on one core starve each other."""
    assert pick_cores(available, 3) == expected


def test_this_process_has_a_core() -> None:
    """The one it runs on."""
    assert usable_cores()


@pytest.mark.parametrize(
    ("architecture", "flags", "expected"),
    [
        ("x86_64", {"avx2"}, "float32"),
        ("x86_64", {"avx2", "avx512f"}, "bfloat16"),
        ("aarch64", set(), "bfloat16"),
    ],
)
def test_the_quick_number_format_is_taken(
    architecture: str, flags: set[str], expected: str
) -> None:
    """Without AVX-512 an engine in bfloat16 makes a token every two seconds."""
    assert number_format(architecture, frozenset(flags)) == expected
