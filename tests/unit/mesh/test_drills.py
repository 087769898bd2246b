"""A drill file is whole whenever it is there, and names a fault that engines know."""

import json
from pathlib import Path

import pytest

from gatemesh_mesh.drills import FAULTS, Drill, end_drill, start_drill


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_written_for_one_life(tmp_path: Path, fault: str) -> None:
    """The engine finds its own process group in the file."""
    path = tmp_path / "drills" / "engine-0.json"
    start_drill(path, Drill(fault, pgid=42))
    assert json.loads(path.read_text()) == {
        "fault": fault,
        "pgid": 42,
        "probability": 1.0,
        "after_tokens": 0,
    }
    assert [one.name for one in path.parent.iterdir()] == ["engine-0.json"]


def test_an_unknown_fault_is_refused_with_the_known_ones() -> None:
    """A typo does not become a drill that does nothing."""
    with pytest.raises(ValueError, match="'nam' is unknown; use one of nan"):
        Drill("nam", pgid=1)


def test_ending_twice_is_harmless(tmp_path: Path) -> None:
    """The demo ends its drill whatever happened before."""
    path = tmp_path / "engine-0.json"
    start_drill(path, Drill("nan", pgid=1))
    end_drill(path)
    end_drill(path)
    assert not path.exists()
