"""Who is told: addresses from a setting or from a secret file, each with its own choices."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from gatemesh_common.errors import SettingsError
from gatemesh_common.invalid import words_of
from gatemesh_notifier.facts import Fact, Level

Language = Literal["en", "zh"]
SCHEME = re.compile(r"^([a-z][a-z0-9]{0,19})://", re.IGNORECASE)
CURE = (
    "name somebody to tell: GATEMESH_NOTIFIER_URLS (apprise addresses, with spaces between them) "
    "or GATEMESH_NOTIFIER_TARGETS_FILE; see docs/notifier.md"
)


class Target(BaseModel):
    """Somebody to tell. The address holds secrets: it is never shown, the name is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,49}$")
    url: SecretStr = Field(min_length=1)
    language: Language = "en"
    levels: frozenset[Level] = Field(default=frozenset(Level), min_length=1)
    pools: frozenset[str] = frozenset()
    """Empty for all."""

    def wants(self, fact: Fact) -> bool:
        """True when the fact is for this target."""
        return fact.level in self.levels and (not self.pools or fact.pool in self.pools)


class TargetFile(BaseModel):
    """The file of targets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    targets: Annotated[tuple[Target, ...], Field(min_length=1)]


def targets_of(urls: SecretStr, file: Path | None, language: Language) -> tuple[Target, ...]:
    """Return who is told, by both settings.

    Raises:
        SettingsError: nobody is, a name stands twice, or the file cannot be used.
    """
    found = (*from_urls(urls, language), *(from_file(file) if file else ()))
    if not found:
        raise SettingsError(f"cannot start, nobody is to be told; {CURE}")
    names = [target.name for target in found]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"targets: name {name!r} stands twice; give each its own")
    return found


def from_urls(urls: SecretStr, language: Language) -> list[Target]:
    """Return one target per address, named for its kind and place: `slack-1`."""
    return [
        Target(name=f"{kind_of(url)}-{place}", url=SecretStr(url), language=language)
        for place, url in enumerate(urls.get_secret_value().split(), start=1)
    ]


def kind_of(url: str) -> str:
    """Return the kind of an address, the one part of it that may be shown."""
    found = SCHEME.match(url)
    return found.group(1).lower() if found else "unknown"


def from_file(path: Path) -> Sequence[Target]:
    """Read the file of targets; an error names the field and never repeats a value."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"GATEMESH_NOTIFIER_TARGETS_FILE: {path} cannot be read: {type(error).__name__}"
        ) from error
    except tomllib.TOMLDecodeError as error:
        # Its text tells line and column, and no more than the one sign that was not expected.
        raise SettingsError(f"{path}: no valid TOML: {error}") from None
    try:
        return TargetFile.model_validate(read).targets
    except ValidationError as error:
        raise SettingsError(f"{path}: {words_of(error)}") from None
