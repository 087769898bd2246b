"""Core dumps of real processes."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatemesh_executor.backends.process_group import PROC, read_stat
from gatemesh_executor.dumping import CoreDumpFailedError, DumpOrder, LocalDumper, is_alive
from gatemesh_executor.instances import CoreDump

pytestmark = pytest.mark.integration

HOLD = "import sys, time; held = bytearray(b'x' * {size}); print('up', flush=True); time.sleep(600)"
PIPED = (PROC / "sys/kernel/core_pattern").read_text().startswith("|")


class Held:
    """A process that holds some memory, in a group of its own."""

    def __init__(self, folder: Path, size: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD.format(size=size)],
            cwd=folder,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"up\n"

    @property
    def pid(self) -> int:
        """Its pid, and its group."""
        return self.process.pid


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    """Give a process of some 50 MB."""
    held = Held(tmp_path, 40_000_000)
    yield held
    held.process.kill()
    held.process.communicate(timeout=30)


def order(folder: Path, group: int, timeout_s: float = 60.0, **rules: object) -> DumpOrder:
    """Return an order that writes into a folder."""
    into = folder / "dump"
    into.mkdir()
    return DumpOrder(CoreDump(folder=folder, **rules), group, into, timeout_s)


async def test_gcore_keeps_the_memory_and_lets_the_process_go_on(
    held: Held, tmp_path: Path
) -> None:
    """What was in it is in the file."""
    wanted = order(tmp_path, held.pid, how="gcore")
    await LocalDumper().dump(wanted)
    core = wanted.folder / f"core.{held.pid}"
    content = core.read_bytes()
    assert content[:4] == b"\x7fELF"
    assert b"x" * 1_000_000 in content
    stat = read_stat(held.pid)
    assert stat is not None
    assert stat.state in "SR", "it must not stay stopped"


@pytest.mark.parametrize(
    ("rules", "timeout_s", "told"),
    [
        pytest.param({"most_bytes": 10_000_000}, 60.0, "most_bytes is 10000000", id="too-large"),
        pytest.param({}, 0.05, "not done in 0.05 s", id="too-slow"),
    ],
)
async def test_the_bounds_hold(
    held: Held, tmp_path: Path, rules: dict[str, int], timeout_s: float, told: str
) -> None:
    """The process goes on, and can be ended in order."""
    with pytest.raises(CoreDumpFailedError, match=told):
        await LocalDumper().dump(order(tmp_path, held.pid, timeout_s, how="gcore", **rules))
    held.process.terminate()
    assert await asyncio.to_thread(held.process.wait, 30) == -15


@pytest.mark.skipif(PIPED, reason="core_pattern pipes cores to a program here: abort takes none")
async def test_abort_has_the_kernel_write_it(held: Held, tmp_path: Path) -> None:
    """The process ends by it; the file is moved to where dumps lie."""
    wanted = order(tmp_path, held.pid, how="abort")
    await LocalDumper().dump(wanted)
    assert not is_alive(held.pid)
    assert (wanted.folder / f"core.{held.pid}").read_bytes()[:4] == b"\x7fELF"
    assert await asyncio.to_thread(held.process.wait, 30) == -6
