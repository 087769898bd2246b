"""Looking at every number."""

from pathlib import Path

import numpy as np
import pytest

from gatemesh_executor.weights import scan
from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.scan import scan_file

from .conftest import floats, tensor_bytes


def bits(dtype: str, kind: str, *patterns: int) -> bytes:
    """Return one tensor's file with these bit patterns."""
    raw = np.array(patterns, kind).tobytes()
    return tensor_bytes({"w": (dtype, [len(patterns)], raw)})


def scanned(tmp_path: Path, content: bytes) -> scan.FileFigures:
    """Scan a file with this content."""
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    return scan_file(path)


@pytest.mark.parametrize(
    ("dtype", "kind", "nan", "largest"),
    [
        pytest.param("F64", "u8", 0x7FF8000000000000, 0x7FEFFFFFFFFFFFFF, id="F64"),
        pytest.param("F32", "u4", 0xFFC00000, 0x7F7FFFFF, id="F32"),
        pytest.param("BF16", "u2", 0x7FC1, 0x7F7F, id="BF16"),
        pytest.param("F16", "u2", 0xFE00, 0x7BFF, id="F16"),
        pytest.param("F8_E5M2", "u1", 0x7E, 0x7B, id="F8_E5M2"),
        pytest.param("F8_E4M3", "u1", 0xFF, 0x7E, id="F8_E4M3"),
        pytest.param("F8_E8M0", "u1", 0xFF, 0xFE, id="F8_E8M0"),
        pytest.param("F8_E4M3FNUZ", "u1", 0x80, 0x7F, id="F8_E4M3FNUZ"),
        pytest.param("F8_E5M2FNUZ", "u1", 0x80, 0x7F, id="F8_E5M2FNUZ"),
    ],
)
def test_nan_is_found_in_every_type(
    tmp_path: Path, dtype: str, kind: str, nan: int, largest: int
) -> None:
    """And the largest number is none."""
    assert scanned(tmp_path, bits(dtype, kind, 0, 1, largest)).tensors == 1
    with pytest.raises(WeightsRefusedError, match="tensor w: 1 NaN, 0 infinite of 3"):
        scanned(tmp_path, bits(dtype, kind, 0, nan, largest))


@pytest.mark.parametrize(
    ("dtype", "kind", "infinity"),
    [
        ("F64", "u8", 0xFFF0000000000000),
        ("F32", "u4", 0x7F800000),
        ("BF16", "u2", 0xFF80),
        ("F16", "u2", 0x7C00),
        ("F8_E5M2", "u1", 0xFC),
    ],
)
def test_infinity_is_found(tmp_path: Path, dtype: str, kind: str, infinity: int) -> None:
    """In the types that know it, with either sign."""
    with pytest.raises(WeightsRefusedError, match="0 NaN, 1 infinite"):
        scanned(tmp_path, bits(dtype, kind, 1, infinity))


def test_odd_tensors_are_named(tmp_path: Path) -> None:
    """They are no proof: a bias of zeros is usual."""
    content = tensor_bytes(
        {
            "bias": floats([0.0, -0.0, 0.0]),
            "scaled": floats([1.0, 2e5]),
            "one": floats([0.0]),
            "usual": floats([1.0, 0.0, -3.0]),
            "table": ("I32", [2], bytes(8)),
        }
    )
    found = scanned(tmp_path, content)
    assert found.signs == ("bias: all_zero", "scaled: huge", "table: all_zero")
    assert found.tensors == 5


def test_a_tensor_larger_than_a_chunk_is_seen_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One broken number in the last part is enough."""
    monkeypatch.setattr(scan, "CHUNK_BYTES", 64)
    numbers = np.ones(100, "f4")
    assert scanned(tmp_path, tensor_bytes({"w": floats(numbers)})).numbers == 100
    numbers[99] = np.nan
    with pytest.raises(WeightsRefusedError, match="1 NaN"):
        scanned(tmp_path, tensor_bytes({"w": floats(numbers)}))


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    """The header tells how long it must be."""
    with pytest.raises(WeightsRefusedError, match="missing at the end"):
        scanned(tmp_path, tensor_bytes({"w": floats([1.0, 2.0])})[:-1])


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """There is no header."""
    with pytest.raises(WeightsRefusedError, match="impossible length"):
        scanned(tmp_path, b"")
