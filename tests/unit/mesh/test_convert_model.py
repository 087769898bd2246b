"""Finding the packaged model without importing its package."""

from pathlib import Path

import pytest

from gatemesh_mesh.convert_model import find_packaged_model


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which packages are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_model_is_found_though_its_package_cannot_be_imported(packages: Path) -> None:
    """The package wants an engine that is not installed."""
    package = packages / "packaged_model_a"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError")
    (package / "tiny.gguf").write_bytes(b"")
    assert find_packaged_model("packaged_model_a") == package / "tiny.gguf"


def test_a_package_without_a_model_is_named(packages: Path) -> None:
    """The error says where it was looked for."""
    (packages / "packaged_model_b").mkdir()
    with pytest.raises(FileNotFoundError, match="packaged_model_b"):
        find_packaged_model("packaged_model_b")


def test_an_absent_package_is_named() -> None:
    """The same for one that is not installed."""
    with pytest.raises(FileNotFoundError, match="packaged_model_c"):
        find_packaged_model("packaged_model_c")
