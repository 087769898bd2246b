"""Weight files of the stand-in engine."""

import subprocess
import sys
from pathlib import Path

import pytest

from gatemesh_engine_sim.weights import (
    FILE,
    Weights,
    WeightsError,
    digest_of,
    fault_of,
    fresh_parameters,
    loaded,
    read_weights,
    spoilt,
    write_weights,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder of good weights."""
    good = fresh_parameters()
    write_weights(tmp_path / "m", good, digest_of(good))
    return tmp_path / "m"


def test_good_weights_spoil_nothing(folder: Path) -> None:
    """They come back as they were written."""
    weights = loaded(folder)
    assert weights.parameters == fresh_parameters()
    assert weights.strike(salted=False) is None


@pytest.mark.parametrize(("kind", "fault"), [("nan", "nan"), ("noise", "salad")])
def test_a_damaged_file_spoils_every_answer(folder: Path, kind: str, fault: str) -> None:
    """NaN in its own way, other numbers as word salad."""
    good = fresh_parameters()
    write_weights(folder, spoilt(good, kind), digest_of(good))
    for salted in (True, False):
        spec = loaded(folder).strike(salted=salted)
        assert spec is not None
        assert spec.fault == fault


def test_a_reload_mends_memory_but_not_the_cache(folder: Path) -> None:
    """What was cached under damaged weights outlives them, until the cache is reset."""
    weights = loaded(folder)
    before = weights.checksums()
    weights.damage("nan")
    assert weights.checksums() != before
    assert weights.strike(salted=False) is not None
    weights.load()
    assert weights.checksums() == before
    assert weights.strike(salted=True) is None
    assert weights.strike(salted=False) is not None
    weights.reset_cache()
    assert weights.strike(salted=False) is None


def test_a_salted_request_caches_nothing_for_others(folder: Path) -> None:
    """Its prefix is its own."""
    weights = loaded(folder)
    weights.damage("noise")
    weights.strike(salted=True)
    weights.load()
    assert weights.strike(salted=False) is None


def test_without_files_nothing_is_damaged() -> None:
    """The engine of old."""
    weights = Weights()
    weights.load()
    weights.damage("nan")
    assert weights.strike(salted=False) is None


def test_without_a_digest_only_nan_is_damage() -> None:
    """Nothing says what the numbers should be."""
    assert fault_of(spoilt(fresh_parameters(), "noise"), None) is None
    assert fault_of(spoilt(fresh_parameters(), "nan"), None) == "nan"


@pytest.mark.parametrize("content", [b"", b"12345678{", b"\x02" + bytes(7) + b"{}x"[:2]])
def test_a_file_that_cannot_be_read_stops_the_start(folder: Path, content: bytes) -> None:
    """Or holds nothing, which is no damage."""
    (folder / FILE).write_bytes(content)
    if content.endswith(b"{}"):
        assert read_weights(folder / FILE) == ([], None)
    else:
        with pytest.raises(WeightsError):
            loaded(folder)


def test_a_file_that_was_cut_stops_the_start(folder: Path) -> None:
    """As the real engine refuses it."""
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[:-4])
    with pytest.raises(WeightsError, match="not fully covered"):
        loaded(folder)


def test_a_folder_is_written_by_a_command(tmp_path: Path) -> None:
    """For demonstrations: a good copy, and a damaged one."""
    program = [sys.executable, "-m", "gatemesh_engine_sim.weights"]
    subprocess.run([*program, str(tmp_path / "good")], check=True)
    subprocess.run([*program, str(tmp_path / "bad"), "--damage", "noise"], check=True)
    assert loaded(tmp_path / "good").fault is None
    assert loaded(tmp_path / "bad").fault == "salad"
