"""The header of a safetensors file: what each tensor is and where it lies (pure).

Source: the format's own rules, github.com/huggingface/safetensors, README, "Format".
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from gatemesh_executor.weights.manifest import WeightsRefusedError, without_repeats

LENGTH_BYTES = 8
LARGEST_HEADER_BYTES = 100_000_000

BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "C64": 64,
}
"""Width of one element by the name of its type."""


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file; its bytes are `[begin, end)` of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def header_length(prefix: bytes, file_bytes: int) -> int:
    """Return the header's length from the first bytes of a file.

    Raises:
        WeightsRefusedError: there is no header of a possible length.
    """
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    if len(prefix) < LENGTH_BYTES or not 2 <= length <= LARGEST_HEADER_BYTES:  # noqa: PLR2004
        raise WeightsRefusedError("corrupt header: impossible length")
    if LENGTH_BYTES + length > file_bytes:
        raise WeightsRefusedError("corrupt header: longer than the file")
    return length


def parse_header(header: bytes, file_bytes: int) -> tuple[Tensor, ...]:
    """Return the tensors of a file in the order of their bytes.

    Raises:
        WeightsRefusedError: the header is corrupt, or the tensors do not fill the file exactly.
    """
    listed = _read(header)
    listed.pop("__metadata__", None)
    start = LENGTH_BYTES + len(header)
    tensors = sorted(
        (_tensor(name, fields, start) for name, fields in listed.items()),
        key=lambda tensor: (tensor.begin, tensor.end),
    )
    _refuse_gaps(tensors, start, file_bytes)
    return tuple(tensors)


def _read(header: bytes) -> dict[str, Any]:
    try:
        listed = json.loads(header, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError) as error:
        raise WeightsRefusedError(f"corrupt header: {str(error)[:100]}") from error
    if not isinstance(listed, dict):
        raise WeightsRefusedError("corrupt header: no JSON object")
    return listed


def _tensor(name: str, fields: Any, start: int) -> Tensor:
    shown = name[:200]
    try:
        dtype, shape, (begin, end) = fields["dtype"], fields["shape"], fields["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsRefusedError(f"tensor {shown}: corrupt header") from error
    if dtype not in BITS:
        raise WeightsRefusedError(f"tensor {shown}: unknown type {str(dtype)[:40]!r}")
    if not isinstance(shape, list) or not all(_is_size(number) for number in (*shape, begin, end)):
        raise WeightsRefusedError(f"tensor {shown}: corrupt header")
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8 or end - begin != bits // 8:
        raise WeightsRefusedError(
            f"tensor {shown}: {end - begin} bytes do not hold {shape} {dtype}"
        )
    return Tensor(name, dtype, tuple(shape), start + begin, start + end)


def _is_size(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _refuse_gaps(tensors: list[Tensor], start: int, file_bytes: int) -> None:
    place = start
    for tensor in tensors:
        if tensor.begin != place:
            kind = "overlaps another" if tensor.begin < place else "leaves a gap before it"
            raise WeightsRefusedError(f"tensor {tensor.name[:200]}: {kind}")
        place = tensor.end
    if place > file_bytes:
        raise WeightsRefusedError(f"{place - file_bytes} bytes are missing at the end of the file")
    if place < file_bytes:
        raise WeightsRefusedError(f"{file_bytes - place} bytes too many at the end of the file")
