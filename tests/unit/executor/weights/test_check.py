"""The check of a whole folder."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatemesh_executor.weights.check import MARK_FILE, check, scan_folder, verify_folder
from gatemesh_executor.weights.manifest import Manifest, WeightsRefusedError

from .conftest import floats, tensor_bytes


def manifest_of(folder: Path) -> Manifest:
    """Return the manifest that fits a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_good_folder_passes(good_folder: Path) -> None:
    """Our own mark and ignored files need not be listed."""
    manifest = manifest_of(good_folder)
    (good_folder / MARK_FILE).write_text("c-1")
    (good_folder / ".cache").mkdir()
    (good_folder / ".cache" / "lock").touch()
    assert verify_folder(good_folder, manifest, (".cache/*",)) == {"files": 2}


def test_a_missing_file_is_named(good_folder: Path) -> None:
    """And how many more."""
    manifest = manifest_of(good_folder)
    for path in good_folder.iterdir():
        path.unlink()
    with pytest.raises(WeightsRefusedError, match=r"config.json: missing, and 1 more"):
        verify_folder(good_folder, manifest, ())


def test_an_extra_file_is_named(good_folder: Path) -> None:
    """An engine loads every weight file it finds."""
    manifest = manifest_of(good_folder)
    (good_folder / "model-2.safetensors").touch()
    with pytest.raises(WeightsRefusedError, match=r"model-2.safetensors: not in the manifest"):
        verify_folder(good_folder, manifest, ())


def test_one_changed_byte_is_named(good_folder: Path) -> None:
    """Of the right length, as a bad disk leaves it."""
    manifest = manifest_of(good_folder)
    (good_folder / "config.json").write_text("{]")
    with pytest.raises(WeightsRefusedError, match=r"config.json: SHA-256 is \w{12}…, not \w{12}…"):
        verify_folder(good_folder, manifest, ())


def test_what_is_no_file_is_refused(good_folder: Path) -> None:
    """Reading a pipe would wait for ever."""
    manifest = {**manifest_of(good_folder), "pipe": "0" * 64}
    os.mkfifo(good_folder / "pipe")
    with pytest.raises(WeightsRefusedError, match="pipe: not a file"):
        verify_folder(good_folder, manifest, ())


def test_a_scan_names_file_and_tensor(good_folder: Path) -> None:
    """The operator knows which shard to look at."""
    assert scan_folder(good_folder) == {"files": 1, "tensors": 2, "signs": []}
    (good_folder / "x.safetensors").write_bytes(
        tensor_bytes({"layers.3.norm": floats([float("nan")])})
    )
    with pytest.raises(WeightsRefusedError, match=r"x.safetensors: tensor layers.3.norm: 1 NaN"):
        scan_folder(good_folder)


def test_odd_tensors_are_told(good_folder: Path) -> None:
    """With their file."""
    (good_folder / "x.safetensors").write_bytes(tensor_bytes({"b": floats([0.0, 0.0])}))
    assert scan_folder(good_folder)["signs"] == ["x.safetensors: b: all_zero"]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Whatever is asked."""
    order = {"task": "scan", "folder": str(tmp_path / "none")}
    assert check(order) == {"refused": "none: no such folder"}


def test_a_manifest_that_is_not_there_is_refused(good_folder: Path, tmp_path: Path) -> None:
    """Unverified files are not served."""
    order = {
        "task": "verify",
        "folder": str(good_folder),
        "manifest": str(tmp_path / "none"),
        "ignored": [],
    }
    assert "none" in check(order)["refused"]


def test_it_runs_as_a_program(good_folder: Path) -> None:
    """Order in, result out."""
    done = subprocess.run(
        [sys.executable, "-m", "gatemesh_executor.weights.check"],
        input=json.dumps({"task": "scan", "folder": str(good_folder)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["tensors"] == 2
