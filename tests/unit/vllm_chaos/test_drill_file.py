"""The drill file as a running engine follows it."""

import json
import os
from pathlib import Path

import pytest

from gatemesh_vllm_chaos.drill import Drill, Fault
from gatemesh_vllm_chaos.drill_file import (
    CHECK_INTERVAL_S,
    DrillFile,
    receipt_path,
    write_receipt,
)

PGID = 4242


class Clock:
    """Time that passes only when told."""

    now = 100.0

    def __call__(self) -> float:
        """The present second."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the drill file will lie."""
    return tmp_path / "drill.json"


@pytest.fixture
def drills(path: Path, clock: Clock) -> DrillFile:
    """The file as the engine of group 4242 sees it."""
    return DrillFile(path, PGID, clock)


def order(path: Path, fault: str, pgid: int = PGID) -> None:
    """Write a drill."""
    path.write_text(json.dumps({"fault": fault, "pgid": pgid}))


def test_no_file_no_drill(drills: DrillFile) -> None:
    """Off unless a file turns it on."""
    assert drills.current() is None


def test_a_file_turns_it_on_and_its_absence_off(
    path: Path, drills: DrillFile, clock: Clock
) -> None:
    """Both without a restart."""
    order(path, "nan")
    assert drills.current() == Drill(Fault.NAN, PGID)
    path.unlink()
    clock.now += CHECK_INTERVAL_S
    assert drills.current() is None


def test_the_disk_is_looked_at_once_per_interval(
    path: Path, drills: DrillFile, clock: Clock
) -> None:
    """Between two looks a step costs nothing."""
    assert drills.current() is None
    order(path, "nan")
    clock.now += CHECK_INTERVAL_S * 0.99
    assert drills.current() is None
    clock.now += CHECK_INTERVAL_S * 0.01
    assert drills.current() is not None


def test_another_order_replaces_the_first(path: Path, drills: DrillFile, clock: Clock) -> None:
    """A drill can change its fault while it runs."""
    order(path, "nan")
    drills.current()
    order(path, "stuck")
    os.utime(path, ns=(1, 1))
    clock.now += CHECK_INTERVAL_S
    assert drills.current() == Drill(Fault.STUCK, PGID)


def test_another_life_is_left_alone(path: Path, drills: DrillFile) -> None:
    """The file of a life that ended does nothing to the next."""
    order(path, "nan", pgid=PGID + 1)
    assert drills.current() is None


def test_a_half_written_file_is_no_drill(path: Path, drills: DrillFile) -> None:
    """Nor an error."""
    path.write_text('{"fault": "nan", "pg')
    assert drills.current() is None


def test_a_folder_in_its_place_is_no_drill(path: Path, drills: DrillFile) -> None:
    """Nor an error either."""
    path.mkdir()
    assert drills.current() is None


def test_the_receipt_tells_what_and_when(path: Path) -> None:
    """A timeline can start at it."""
    write_receipt(path, Drill(Fault.FLAT, PGID), 12.5)
    assert json.loads(receipt_path(path).read_text()) == {
        "fault": "flat",
        "pgid": PGID,
        "spoiled_at": 12.5,
    }
    assert sorted(found.name for found in path.parent.iterdir()) == ["drill.json.fired"]


def test_a_receipt_that_cannot_be_written_is_no_error(path: Path) -> None:
    """The engine goes on."""
    write_receipt(path / "nowhere" / "drill.json", Drill(Fault.FLAT, PGID), 12.5)
