"""A manifest of weight files: which belong there, and their SHA-256 (pure)."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from gatemesh_common.errors import GatemeshError

LINE = re.compile(r"^(?P<digest>[0-9a-fA-F]{64}) [ *](?P<name>.+)$")
DIGEST = re.compile(r"^(?:sha256:)?(?P<digest>[0-9a-fA-F]{64})$")

Manifest = Mapping[str, str]
"""SHA-256 in lower-case hex by the file's path in the folder."""


class WeightsRefusedError(GatemeshError):
    """Weight files are not what they should be; the text names the file, the tensor and why."""


def parse_manifest(text: str) -> Manifest:
    """Read the output of `sha256sum`, or JSON: a map of path to digest, alone or under `files`.

    Raises:
        WeightsRefusedError: it cannot be read, is empty, or names a file outside of the folder.
    """
    pairs = _json_pairs(text) if text.lstrip().startswith("{") else _line_pairs(text)
    found: dict[str, str] = {}
    for name, digest in pairs:
        path = _inner_path(name)
        if path in found:
            raise WeightsRefusedError(f"manifest: {path} is listed twice")
        found[path] = digest.lower()
    if not found:
        raise WeightsRefusedError("manifest: lists no file")
    return found


def _line_pairs(text: str) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fitting = LINE.match(line)
        if fitting is None:
            raise WeightsRefusedError(f"manifest: line {number} is not `SHA256  path`")
        yield fitting["name"], fitting["digest"]


def _json_pairs(text: str) -> Iterable[tuple[str, str]]:
    try:
        listed: Any = json.loads(text, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError) as error:
        raise WeightsRefusedError(f"manifest: no JSON: {error}"[:300]) from error
    listed = listed.get("files", listed)
    if not isinstance(listed, dict):
        raise WeightsRefusedError("manifest: `files` must map each path to its SHA-256")
    for name, value in listed.items():
        digest = value.get("sha256") if isinstance(value, dict) else value
        fitting = DIGEST.match(digest) if isinstance(digest, str) else None
        if fitting is None:
            raise WeightsRefusedError(f"manifest: {name}: no SHA-256 of 64 hex digits")
        yield name, fitting["digest"]


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict.

    Raises:
        ValueError: a name comes twice: which of the two counts, nobody could tell.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is listed twice")
    return found


def _inner_path(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise WeightsRefusedError(f"manifest: {name!r} is not a path inside of the folder")
    return str(path)
