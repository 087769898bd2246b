"""A program of its own: check one folder of weights and say what was found, as JSON.

It runs apart so that hashing holds up nothing, ends at once when it is no longer wanted, and a
file that breaks under it takes nobody along: `python -m gatemesh_executor.weights.check`.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gatemesh_executor.weights.manifest import Manifest, WeightsRefusedError, parse_manifest
from gatemesh_executor.weights.scan import scan_file

MARK_FILE = ".gatemesh-weights"
"""Says which command put the folder there; no part of the weights."""
CHUNK_BYTES = 2**22
MOST_SIGNS = 20


def verify_folder(folder: Path, manifest: Manifest, ignored: Iterable[str]) -> dict[str, Any]:
    """Compare every file with the manifest.

    Raises:
        WeightsRefusedError: a file is missing, extra, or not what the manifest says.
    """
    patterns = (MARK_FILE, *ignored)
    present = {name for name in files_of(folder) if not _is_ignored(name, patterns)}
    missing, extra = sorted(manifest.keys() - present), sorted(present - manifest.keys())
    if missing:
        raise WeightsRefusedError(f"{missing[0]}: missing{_and_others(missing)}")
    if extra:
        raise WeightsRefusedError(f"{extra[0]}: not in the manifest{_and_others(extra)}")
    for name, digest in sorted(manifest.items()):
        found = _digest(folder / name)
        if found != digest:
            raise WeightsRefusedError(f"{name}: SHA-256 is {found[:12]}…, not {digest[:12]}…")
    return {"files": len(present)}


def scan_folder(folder: Path) -> dict[str, Any]:
    """Look at every number of every safetensors file.

    Raises:
        WeightsRefusedError: a file is corrupt or a number is broken; names file and tensor.
    """
    names = sorted(name for name in files_of(folder) if name.endswith(".safetensors"))
    tensors, signs = 0, []
    for name in names:
        try:
            figures = scan_file(folder / name)
        except WeightsRefusedError as error:
            raise WeightsRefusedError(f"{name}: {error}") from error
        tensors += figures.tensors
        signs += [f"{name}: {sign}" for sign in figures.signs]
    return {"files": len(names), "tensors": tensors, "signs": signs[:MOST_SIGNS]}


def files_of(folder: Path) -> list[str]:
    """Return the path of everything in a folder that is no folder."""
    if not folder.is_dir():
        raise WeightsRefusedError(f"{folder.name}: no such folder")
    return [
        str((Path(parent) / name).relative_to(folder))
        for parent, _, names in os.walk(folder)
        for name in names
    ]


def _is_ignored(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _and_others(names: list[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""


def _digest(path: Path) -> str:
    if not path.is_file():
        raise WeightsRefusedError(f"{path.name}: not a file")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def check(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out one order: `verify` with a manifest, or `scan`."""
    folder = Path(order["folder"])
    try:
        if order["task"] == "scan":
            return scan_folder(folder)
        manifest = parse_manifest(Path(order["manifest"]).read_text(encoding="utf-8"))
        return verify_folder(folder, manifest, order["ignored"])
    except WeightsRefusedError as error:
        return {"refused": str(error)}
    except (OSError, UnicodeDecodeError) as error:
        return {"refused": f"cannot be read: {error}"}


def main() -> int:
    """Read an order from the input, write what was found to the output."""
    sys.stdout.write(json.dumps(check(json.loads(sys.stdin.read()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
