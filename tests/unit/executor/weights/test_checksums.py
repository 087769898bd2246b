"""Checksums of proven engines."""

from pathlib import Path

import pytest

from gatemesh_executor.instances import Instance
from gatemesh_executor.weights.checksums import Checksums, different

ONE = Instance(instance_id="e", base_url="http://e:1", program="e", model_version="m@1")


def test_they_are_found_again(tmp_path: Path) -> None:
    """By the next executor, for the same instance and version only."""
    Checksums(tmp_path / "state").save(ONE, {"a": "1"})
    kept = Checksums(tmp_path / "state")
    assert kept.load(ONE) == {"a": "1"}
    assert kept.load(ONE.model_copy(update={"model_version": "m@2"})) is None
    assert kept.load(ONE.model_copy(update={"instance_id": "f"})) is None


def test_without_a_folder_nothing_is_kept() -> None:
    """And nothing fails."""
    nowhere = Checksums()
    nowhere.save(ONE, {"a": "1"})
    assert nowhere.load(ONE) is None
    assert not nowhere.kept


@pytest.mark.parametrize("content", ["", "{", "[]", '{"checksums": 5}'])
def test_a_broken_file_is_none(tmp_path: Path, content: str) -> None:
    """The next proof writes it anew."""
    Checksums(tmp_path).save(ONE, {"a": "1"})
    next(tmp_path.iterdir()).write_text(content)
    assert Checksums(tmp_path).load(ONE) is None


def test_what_differs_is_named() -> None:
    """Changed, gone, and new ones."""
    assert different({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"}) == [
        "b",
        "c",
        "d",
    ]
