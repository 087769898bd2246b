"""Calibrations on disk."""

from pathlib import Path

import pytest

from gatemesh_agent.calibration import Calibration
from gatemesh_agent.calibration_store import MOST_KEPT, CalibrationStore, key_of

BOOK = Calibration(("e0/1", "e1/2"), 2, frozenset({"a", "b"}))


def test_it_outlives_the_agent(tmp_path: Path) -> None:
    """For the same model, model version and suite version only."""
    CalibrationStore(tmp_path / "spool" / "c.json").keep(BOOK, "m", "m@1", "2")
    store = CalibrationStore(tmp_path / "spool" / "c.json")
    assert store.find("m", "m@1", "2") == BOOK
    assert store.find("m", "m@2", "2") == Calibration()
    assert store.find("m", "m@1", "3") == Calibration()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 5}', '{"x": {"voters": []}}'])
def test_a_broken_file_is_an_empty_one(tmp_path: Path, content: str) -> None:
    """The instances show it again."""
    path = tmp_path / "c.json"
    path.write_text(content)
    assert CalibrationStore(path).find("m") == Calibration()


def test_it_goes_on_without_a_disk(tmp_path: Path) -> None:
    """In memory, until the next start."""
    (tmp_path / "file").touch()
    store = CalibrationStore(tmp_path / "file" / "c.json")
    store.keep(BOOK, "m")
    assert store.find("m") == BOOK


def test_the_oldest_goes(tmp_path: Path) -> None:
    """Years of model versions fill no disk; one that is used again is young."""
    store = CalibrationStore(tmp_path / "c.json")
    store.keep(BOOK, "first")
    store.keep(BOOK, "second")
    store.keep(BOOK, "first")
    for number in range(MOST_KEPT - 1):
        store.keep(BOOK, str(number))
    assert store.find("first") == BOOK
    assert store.find("second") == Calibration()


def test_names_may_hold_anything() -> None:
    """Lone surrogates, too; two names are not one."""
    assert key_of("a\ud800") != key_of("a")
    assert key_of("a", "b") != key_of("ab")
