"""API keys of the agent's clients: kept as hashes, in a TOML file, each with its limits."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatemesh_common.errors import GatemeshError
from gatemesh_common.invalid import words_of

PREFIX = "gm-"
"""How our keys begin, so that whoever finds one knows what it opens."""
SECRET_BYTES = 32
MOST_PER_MIN = 10**12


class KeysUnreadableError(GatemeshError):
    """A file of keys is no such file; names the entry and never repeats it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one key may use in a minute; 0 means as much as it likes."""

    requests_per_min: int = 0
    tokens_per_min: int = 0


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One client's key."""

    name: str
    digest: bytes
    limits: Limits


PerMin = Annotated[int, Field(ge=0, le=MOST_PER_MIN)]


class Entry(BaseModel):
    """One `[[keys]]` table of the file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=100, pattern=r"^[\w.@:-]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    requests_per_min: PerMin | None = None
    tokens_per_min: PerMin | None = None


class KeysFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    keys: list[Entry] = []


def digest_of(secret: str) -> bytes:
    """Return what is kept of a key: it is long and random, so a plain hash cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def text_in(path: Path) -> str:
    """Return what a file of keys holds.

    Raises:
        KeysUnreadableError: it is no text.
        OSError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise KeysUnreadableError(f"no UTF-8 at byte {error.start}") from None


def read_keys(text: str, defaults: Limits) -> dict[bytes, ApiKey]:
    """Return the keys of a file by their hash.

    Raises:
        KeysUnreadableError: it is no such file, or a name or a key comes twice.
    """
    found: dict[bytes, ApiKey] = {}
    names: set[str] = set()
    for number, entry in enumerate(parse(text).keys):
        key = ApiKey(entry.name, bytes.fromhex(entry.sha256), limits_of(entry, defaults))
        if key.name in names or key.digest in found:
            raise KeysUnreadableError(f"keys[{number}]: this name or this key comes twice")
        names.add(key.name)
        found[key.digest] = key
    return found


def parse(text: str) -> KeysFile:
    """Return what a file says.

    Raises:
        KeysUnreadableError: it is no TOML, or an entry is wrong.
    """
    try:
        return KeysFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise KeysUnreadableError(f"no TOML: {error}") from None
    except ValidationError as error:
        raise KeysUnreadableError(words_of(error)) from None


def limits_of(entry: Entry, defaults: Limits) -> Limits:
    """Return the limits of an entry; what it leaves out is as for all."""
    requests, tokens = entry.requests_per_min, entry.tokens_per_min
    return Limits(
        defaults.requests_per_min if requests is None else requests,
        defaults.tokens_per_min if tokens is None else tokens,
    )


def written(name: str, digest: bytes, limits: Mapping[str, int]) -> str:
    """Return an entry as the file holds it."""
    lines = ["[[keys]]", f'name = "{name}"', f'sha256 = "{digest.hex()}"']
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in limits.items()), ""])
