"""Small safetensors files."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest


def tensor_bytes(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    """Return a file with these tensors: type, shape, bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [place, place + len(raw)],
        }
        place += len(raw)
    text = json.dumps(header).encode()
    body = b"".join(raw for _, _, raw in tensors.values())
    return len(text).to_bytes(8, "little") + text + body


def floats(array: npt.ArrayLike) -> tuple[str, list[int], bytes]:
    """Return a tensor of type F32."""
    numbers = np.asarray(array, "f4")
    return "F32", list(numbers.shape), numbers.tobytes()


@pytest.fixture
def good_folder(tmp_path: Path) -> Path:
    """Give a folder with one good weight file and a configuration."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(
        tensor_bytes({"a.weight": floats([[0.5, -1.0], [2.0, 0.0]]), "a.bias": floats([1.0])})
    )
    (folder / "config.json").write_text("{}")
    return folder
