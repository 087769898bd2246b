"""Looking at every number of a safetensors file, a few megabytes at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.safetensors import LENGTH_BYTES, Tensor, header_length, parse_header

CHUNK_BYTES = 2**23
HUGE = 1e5
"""Weights of trained models stay far below; a matrix that was multiplied does not."""


@dataclass(frozen=True)
class Layout:
    """How broken numbers of a type are told from its bits."""

    unsigned: type[np.unsignedinteger[Any]]
    exponent: int
    """All of these bits set: NaN or infinite."""
    mantissa: int
    """Any of these set besides: NaN."""


LAYOUTS = {
    "F64": Layout(np.uint64, 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "F32": Layout(np.uint32, 0x7F800000, 0x007FFFFF),
    "BF16": Layout(np.uint16, 0x7F80, 0x007F),
    "F16": Layout(np.uint16, 0x7C00, 0x03FF),
    "F8_E5M2": Layout(np.uint8, 0x7C, 0x03),
}
EXACT_NAN = {
    "F8_E4M3": (0x7F, 0xFF),
    "F8_E8M0": (0xFF,),
    "F8_E4M3FNUZ": (0x80,),
    "F8_E5M2FNUZ": (0x80,),
}
"""Types without infinity: the bytes that are NaN."""


@dataclass
class TensorFigures:
    """What was counted of one tensor."""

    numbers: int = 0
    nans: int = 0
    infinities: int = 0
    zeros: int = 0
    largest: float = 0.0

    @property
    def broken(self) -> bool:
        """True when a number is NaN or infinite."""
        return bool(self.nans or self.infinities)

    @property
    def signs(self) -> list[str]:
        """Name what is odd without being proof."""
        found = []
        if self.numbers > 1 and self.zeros == self.numbers:
            found.append("all_zero")
        if self.largest > HUGE:
            found.append("huge")
        return found


@dataclass(frozen=True)
class FileFigures:
    """What was found in one file."""

    tensors: int
    numbers: int
    signs: tuple[str, ...]
    """Odd tensors, each with a word."""


def scan_file(path: Path) -> FileFigures:
    """Look at every tensor of a file.

    Raises:
        WeightsRefusedError: the file is corrupt, or a tensor holds NaN or infinity.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = header_length(file.read(LENGTH_BYTES), size)
        tensors = parse_header(file.read(length), size)
        numbers, signs = 0, []
        for tensor in tensors:
            figures = scan_tensor(file, tensor)
            if figures.broken:
                raise WeightsRefusedError(
                    f"tensor {tensor.name[:200]}: {figures.nans} NaN, {figures.infinities} infinite"
                    f" of {figures.numbers}"
                )
            numbers += figures.numbers
            signs += [f"{tensor.name[:200]}: {sign}" for sign in figures.signs]
    return FileFigures(len(tensors), numbers, tuple(signs))


def scan_tensor(file: BinaryIO, tensor: Tensor) -> TensorFigures:
    """Count one tensor; its memory stays below a few chunks."""
    figures = TensorFigures()
    for raw in _chunks(file, tensor):
        _count(figures, tensor.dtype, raw)
    return figures


def _chunks(file: BinaryIO, tensor: Tensor) -> Iterator[npt.NDArray[np.uint8]]:
    file.seek(tensor.begin)
    left = tensor.end - tensor.begin
    while left:
        raw = file.read(min(left, CHUNK_BYTES))
        if not raw:
            raise WeightsRefusedError(f"tensor {tensor.name[:200]}: the file ends within it")
        left -= len(raw)
        yield np.frombuffer(raw, np.uint8)


def _count(figures: TensorFigures, dtype: str, raw: npt.NDArray[np.uint8]) -> None:
    if dtype in LAYOUTS:
        _count_floats(figures, LAYOUTS[dtype], dtype, raw)
    else:
        figures.numbers += raw.size
        figures.zeros += raw.size - int(np.count_nonzero(raw))
        figures.nans += sum(int(np.count_nonzero(raw == nan)) for nan in EXACT_NAN.get(dtype, ()))


def _count_floats(
    figures: TensorFigures, layout: Layout, dtype: str, raw: npt.NDArray[np.uint8]
) -> None:
    bits = raw.view(layout.unsigned)
    magnitude = bits & (layout.exponent | layout.mantissa)
    figures.numbers += bits.size
    figures.zeros += bits.size - int(np.count_nonzero(magnitude))
    # Without their sign the bits of floats are in the order of the numbers.
    largest = int(magnitude.max(initial=0))
    if largest >= layout.exponent:
        figures.nans += int(np.count_nonzero(magnitude > layout.exponent))
        figures.infinities += int(np.count_nonzero(magnitude == layout.exponent))
    else:
        figures.largest = max(figures.largest, _float_of(largest, dtype))


def _float_of(bits: int, dtype: str) -> float:
    """Return the number that these bits are."""
    if dtype == "BF16":
        return float(np.array([bits << 16], np.uint32).view(np.float32)[0])
    if dtype == "F8_E5M2":
        return float(np.array([bits << 8], np.uint16).view(np.float16)[0])
    unsigned, number = {"F64": ("u8", "f8"), "F32": ("u4", "f4"), "F16": ("u2", "f2")}[dtype]
    return float(np.array([bits], unsigned).view(number)[0])
