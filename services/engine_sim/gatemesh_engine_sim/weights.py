"""Weight files for the stand-in engine: small, real safetensors, whose damage shows in its answers.

`python -m gatemesh_engine_sim.weights FOLDER` writes a good copy, `--damage nan` a bad one.
"""

import argparse
import hashlib
import math
import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from gatemesh_engine_sim.fault_plan import FaultSpec

FILE = "model.safetensors"
SHAPES: Mapping[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (64, 16),
    "model.layers.0.input_layernorm.weight": (16,),
    "model.layers.0.mlp.up_proj.weight": (32, 16),
    "model.norm.weight": (16,),
}
NOISE_FAULT = "salad"
NAN_FAULT = "nan"
DIGEST = "sim_digest"
"""Of the healthy numbers; without it only NaN and infinity are damage."""


class WeightsError(Exception):
    """The files cannot be loaded; the engine does not start."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor, float32, as bytes."""

    name: str
    data: bytes

    @property
    def is_finite(self) -> bool:
        """True when no number is NaN or infinite."""
        return all(math.isfinite(number) for (number,) in struct.iter_unpack("<f", self.data))

    @property
    def checksum(self) -> str:
        """SHA-256 in hex."""
        return hashlib.sha256(self.data).hexdigest()


def digest_of(parameters: list[Parameter]) -> str:
    """SHA-256 over all parameters."""
    return hashlib.sha256(b"".join(one.data for one in parameters)).hexdigest()


@dataclass(slots=True)
class Weights:
    """What is in the engine's memory, and the state of its prefix cache."""

    folder: Path | None = None
    parameters: list[Parameter] = field(default_factory=list)
    digest: str | None = None
    fault: str | None = None
    """What is wrong with what is in memory."""
    cached_fault: str | None = None
    """What damaged weights have written to the prefix cache; it outlives a reload."""

    def load(self) -> None:
        """Read the files, if there is a folder.

        Raises:
            WeightsError: a file is missing, cut off or no safetensors.
        """
        if self.folder is not None:
            self.parameters, self.digest = read_weights(self.folder / FILE)
            self.fault = fault_of(self.parameters, self.digest)

    def damage(self, kind: str) -> None:
        """Spoil what is in memory; the files stay good."""
        self.parameters = spoilt(self.parameters, kind)
        self.fault = fault_of(self.parameters, self.digest)

    def reset_cache(self) -> None:
        """Forget every prefix."""
        self.cached_fault = None

    def strike(self, *, salted: bool) -> FaultSpec | None:
        """The fault of the next request; one with a salt of its own reads no cached prefix."""
        if self.fault is not None and not salted:
            self.cached_fault = self.fault
        fault = self.fault or (None if salted else self.cached_fault)
        return FaultSpec(fault=fault) if fault else None

    def checksums(self) -> dict[str, str]:
        """SHA-256 of each parameter in memory."""
        return {one.name: one.checksum for one in self.parameters}


def fault_of(parameters: list[Parameter], digest: str | None) -> str | None:
    """What answers look like under these weights; None when they are as they should be."""
    if not all(one.is_finite for one in parameters):
        return NAN_FAULT
    right = digest is None or digest_of(parameters) == digest
    return None if right else NOISE_FAULT


def loaded(folder: Path | None) -> Weights:
    """The weights of a folder in memory; none without a folder."""
    weights = Weights(folder)
    weights.load()
    return weights


def spoilt(parameters: list[Parameter], kind: str) -> list[Parameter]:
    """A copy whose first parameter has a NaN, or other numbers."""
    if not parameters:
        return []
    first, *rest = parameters
    bad = struct.pack("<f", math.nan if kind == "nan" else 7.5)
    return [Parameter(first.name, bad + first.data[len(bad) :]), *rest]


def read_weights(path: Path) -> tuple[list[Parameter], str | None]:
    """The parameters of a file and the digest of the healthy ones, where it tells one."""
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header: dict[str, Any] = orjson.loads(content[8 : 8 + length])
        digest = header.pop("__metadata__", {}).get(DIGEST)
        body = content[8 + length :]
        parameters = [_cut(name, one["data_offsets"], body) for name, one in header.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{path}: {error}") from error
    return parameters, digest


def _cut(name: str, offsets: list[int], body: bytes) -> Parameter:
    begin, end = offsets
    if end > len(body) or (end - begin) % 4:
        raise ValueError("SafetensorError: incomplete metadata, file not fully covered")
    return Parameter(name, body[begin:end])


def fresh_parameters(seed: int = 0) -> list[Parameter]:
    """Healthy numbers; the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311
    return [
        Parameter(name, struct.pack(f"<{size}f", *(rng.gauss(0, 0.05) for _ in range(size))))
        for name, size in ((name, math.prod(shape)) for name, shape in SHAPES.items())
    ]


def write_weights(folder: Path, parameters: list[Parameter], digest: str) -> None:
    """Write a file that says which digest is the healthy one."""
    header: dict[str, object] = {"__metadata__": {"format": "pt", DIGEST: digest}}
    place = 0
    for one in parameters:
        end = place + len(one.data)
        shape = list(SHAPES[one.name])
        header[one.name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, end]}
        place = end
    text = orjson.dumps(header)
    folder.mkdir(parents=True, exist_ok=True)
    body = b"".join(one.data for one in parameters)
    (folder / FILE).write_bytes(len(text).to_bytes(8, "little") + text + body)


def main() -> None:
    """Write a folder of weights, good or damaged."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--damage", choices=("nan", "noise"))
    options = parser.parse_args()
    good = fresh_parameters()
    parameters = spoilt(good, options.damage) if options.damage else good
    write_weights(options.folder, parameters, digest_of(good))


if __name__ == "__main__":
    main()
