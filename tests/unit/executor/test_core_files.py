"""Names, room and number of core dumps."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gatemesh_executor.core_files import (
    dump_folder,
    forget_old,
    kernel_name,
    missing_bytes,
    part_of,
    plain,
)

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLACE = dump_folder(Path("/dumps"), "group/engine 0", "9f2c7c0e-3a54-5c1e-8a37-0d8f0a1b2c3d", AT)


def test_a_dump_is_named_after_instance_moment_and_command() -> None:
    """The same command finds its own; an instance's name cannot lead elsewhere."""
    assert str(PLACE) == "/dumps/group_engine_0_20260501T120000Z_0d8f0a1b2c3d"
    assert part_of(PLACE).name == ".group_engine_0_20260501T120000Z_0d8f0a1b2c3d.part"
    assert plain("../../etc") == "_.._etc"
    assert plain("..") == "_"


def test_the_newest_of_an_instance_stay(tmp_path: Path) -> None:
    """What was never finished goes; what belongs to others stays."""
    kept = {f"e_2026050{day}T000000Z_abc" for day in (3, 4)}
    others = {"e_1_20200101T000000Z_abc", "e_notes", ".core_dump.log", "f_20200101T000000Z_abc"}
    gone = {"e_20260501T000000Z_abc", "e_20260502T000000Z_abc", ".e_20260505T000000Z_abc.part"}
    for name in kept | others | gone:
        (tmp_path / name).mkdir()
    forget_old(tmp_path, "e", 2)
    assert {path.name for path in tmp_path.iterdir()} == kept | others
    forget_old(tmp_path, "e", 2)
    assert {path.name for path in tmp_path.iterdir()} == kept | others


def test_missing_room_is_counted(tmp_path: Path) -> None:
    """Also for a folder that is not there yet."""
    assert missing_bytes(tmp_path / "not" / "there", 1) == 0
    assert missing_bytes(tmp_path, 2**62) > 2**61


@pytest.mark.parametrize(
    ("pattern", "adds_pid", "name"),
    [
        ("core", False, "core"),
        ("core", True, "core.42"),
        ("/var/crash/%e-%p.core", True, "/var/crash/*-42.core"),
        ("core.%t.%i", False, "core.*.*"),
        ("100%%", False, "100%"),
    ],
)
def test_what_the_kernel_calls_a_core(pattern: str, adds_pid: bool, name: str) -> None:  # noqa: FBT001
    """Words that are not known here stand for anything."""
    assert kernel_name(pattern, 42, adds_pid=adds_pid) == name
