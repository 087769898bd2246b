"""What the gate benchmark reads: JSON Lines, gzipped or not, with errors that name the line."""

import gzip
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LARGEST_PIECE = 9


class InputError(Exception):
    """A file that cannot be measured; the text says which and what to do."""


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file, gzipped or not."""
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            yield parse_line(path, number, line)


def text_lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    if not path.is_file():
        raise InputError(f"{path} is not there; give the path of a JSON Lines file")
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
            return list(lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); is it complete?") from error


def parse_line(path: Path, number: int, line: str) -> dict[str, Any]:
    """Parse one line; the error names file and line."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number}: not JSON ({error}); repair or drop it") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}, line {number}: not a JSON object; each line must be one")
    return value


def need(path: Path, number: int, value: Mapping[str, Any], *names: str) -> None:
    """Raise when a field is missing."""
    for name in names:
        if name not in value:
            raise InputError(f"{path}, line {number}: no field {name!r}; each line needs {names}")


def pieces_of(text: str, rng: random.Random, largest: int = LARGEST_PIECE) -> Iterator[str]:
    """Cut a text anywhere, also inside a character of several code points."""
    at = 0
    while at < len(text):
        size = rng.randint(1, largest)
        yield text[at : at + size]
        at += size
