"""Bounds of core dumps; dumps of real processes are tested under integration."""

import asyncio
import os
from pathlib import Path

import pytest

from gatemesh_executor.dumping import (
    CoreDumpFailedError,
    DumpOrder,
    LocalDumper,
    NoDumper,
    is_alive,
    largest_first,
    need_room,
    newest_since,
    resident_bytes,
    until_too_large,
    written_bytes,
)
from gatemesh_executor.instances import CoreDump

NOBODY = 2**22 + 1
"""No process has such a pid."""


def order(folder: Path, **rules: object) -> DumpOrder:
    """Return an order about nobody."""
    return DumpOrder(CoreDump(folder=folder, **rules), NOBODY, folder, 1.0)


async def test_what_is_gone_or_elsewhere_is_told(tmp_path: Path) -> None:
    """Nothing is waited for."""
    with pytest.raises(CoreDumpFailedError, match="none of its processes runs"):
        await LocalDumper().dump(order(tmp_path, how="gcore"))
    with pytest.raises(CoreDumpFailedError, match="does not run on the executor's machine"):
        await NoDumper().dump(order(tmp_path))


def test_a_dump_must_fit(tmp_path: Path) -> None:
    """Within its own bound, at it still, and on the disk; what the kernel writes is cut off."""
    need_room(order(tmp_path, how="gcore", most_bytes=2_000_000), 2_000_000)
    with pytest.raises(CoreDumpFailedError, match="most_bytes is 2000000"):
        need_room(order(tmp_path, how="gcore", most_bytes=2_000_000), 2_000_001)
    need_room(order(tmp_path, how="abort", most_bytes=2_000_000), 2_000_001)
    with pytest.raises(CoreDumpFailedError, match=f"more are needed free in {tmp_path}"):
        need_room(order(tmp_path, how="gcore", most_bytes=2**62), 2**62)


def test_memory_and_life_of_a_process() -> None:
    """Of this one, and of one that is gone."""
    assert resident_bytes(os.getpid()) > 1_000_000
    assert os.getpid() in largest_first(os.getpgid(0))
    assert is_alive(os.getpid())
    assert (resident_bytes(NOBODY), largest_first(NOBODY), is_alive(NOBODY)) == (0, [], False)


def test_the_kernels_file_is_found_by_name_and_time(tmp_path: Path) -> None:
    """An old core of the same name is another one's."""
    old, new = tmp_path / "core", tmp_path / "core.7"
    old.touch()
    os.utime(old, (1000, 1000))
    assert newest_since(tmp_path, "core*", 2000.0) is None
    new.touch()
    os.utime(new, (2000, 2000))
    assert newest_since(tmp_path, "core*", 2000.0) == new
    assert newest_since(Path("/nowhere"), f"{tmp_path}/core*", 2000.0) == new


def test_holes_take_no_room(tmp_path: Path) -> None:
    """A core is often full of them."""
    with (tmp_path / "core.1").open("wb") as file:
        file.truncate(10_000_000)
    assert written_bytes(tmp_path) < 1_000_000


async def test_a_dump_that_outgrows_its_bound_is_noticed(tmp_path: Path) -> None:
    """At the bound it may go on, past it not."""
    (tmp_path / "core.1").write_bytes(b"x" * 1_000_000)
    bound = written_bytes(tmp_path)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await until_too_large(order(tmp_path, most_bytes=bound))
    await until_too_large(order(tmp_path, most_bytes=bound - 1))
