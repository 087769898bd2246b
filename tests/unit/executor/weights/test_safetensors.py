"""Headers of safetensors files."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.safetensors import BITS, header_length, parse_header


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    """Return a tensor as a header has it."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def read(listed: object, data_bytes: int) -> Any:
    """Read a header of a file with so many bytes of data."""
    header = json.dumps(listed).encode()
    return parse_header(header, 8 + len(header) + data_bytes)


def test_tensors_come_in_the_order_of_their_bytes() -> None:
    """With their places in the file; metadata is none."""
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "b": tensor("F32", [2], 4, 12),
            "a": tensor("BF16", [1, 2], 0, 4),
            "none": tensor("F32", [0], 4, 4),
        }
    ).encode()
    start = 8 + len(header)
    found = parse_header(header, start + 12)
    assert [(one.name, one.begin - start, one.end - start) for one in found] == [
        ("a", 0, 4),
        ("none", 4, 4),
        ("b", 4, 12),
    ]
    assert found[0].shape == (1, 2)


@pytest.mark.parametrize("dtype", BITS)
def test_every_type_has_its_width(dtype: str) -> None:
    """Eight numbers fill a whole number of bytes."""
    bytes_ = BITS[dtype]
    assert read({"a": tensor(dtype, [8], 0, bytes_)}, bytes_)
    with pytest.raises(WeightsRefusedError, match="do not hold"):
        read({"a": tensor(dtype, [8], 0, bytes_ + 1)}, bytes_ + 1)


@pytest.mark.parametrize(
    ("listed", "data_bytes", "named"),
    [
        pytest.param([], 0, "no JSON object", id="list"),
        pytest.param({"a": 5}, 0, "tensor a: corrupt", id="no-fields"),
        pytest.param({"a": tensor("F99", [1], 0, 4)}, 4, "unknown type 'F99'", id="type"),
        pytest.param({"a": tensor("F32", [-1], 0, -4)}, 0, "tensor a: corrupt", id="negative"),
        pytest.param({"a": tensor("F32", [1.0], 0, 4)}, 4, "corrupt", id="broken-shape"),  # type: ignore[list-item]
        pytest.param({"a": tensor("F32", [2], 0, 4)}, 4, "do not hold", id="short-offsets"),
        pytest.param(
            {"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 2, 6)},
            6,
            "tensor b: overlaps",
            id="overlap",
        ),
        pytest.param({"a": tensor("F32", [1], 4, 8)}, 8, "leaves a gap", id="gap"),
        pytest.param({"a": tensor("F32", [2], 0, 8)}, 7, "1 bytes are missing", id="cut"),
        pytest.param({"a": tensor("F32", [2], 0, 8)}, 9, "1 bytes too many", id="long"),
    ],
)
def test_a_wrong_header_is_refused(listed: object, data_bytes: int, named: str) -> None:
    """With the tensor at fault."""
    with pytest.raises(WeightsRefusedError) as caught:
        read(listed, data_bytes)
    assert named in str(caught.value)


def test_a_name_listed_twice_is_refused() -> None:
    """Engines and we could take different ones."""
    one = json.dumps(tensor("F32", [1], 0, 4))
    header = f'{{"a": {one}, "a": {one}}}'.encode()
    with pytest.raises(WeightsRefusedError, match="twice"):
        parse_header(header, 8 + len(header) + 4)


@pytest.mark.parametrize(
    ("prefix", "file_bytes", "named"),
    [
        (b"\x05", 1, "impossible length"),
        ((2**40).to_bytes(8, "little"), 2**50, "impossible length"),
        ((0).to_bytes(8, "little"), 100, "impossible length"),
        ((93).to_bytes(8, "little"), 100, "longer than the file"),
    ],
)
def test_an_impossible_length_is_refused(prefix: bytes, file_bytes: int, named: str) -> None:
    """Before anything of it is read."""
    with pytest.raises(WeightsRefusedError, match=named):
        header_length(prefix, file_bytes)
    assert header_length((92).to_bytes(8, "little"), 100) == 92


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_are_read_or_refused(header: bytes, file_bytes: int) -> None:
    """No other error comes out."""
    with contextlib.suppress(WeightsRefusedError):
        parse_header(header, file_bytes)
