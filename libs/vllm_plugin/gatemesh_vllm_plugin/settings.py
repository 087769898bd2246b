"""What the plugin is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

OUT_VARIABLE = "GATEMESH_PLUGIN_OUT"
EVERY_VARIABLE = "GATEMESH_PLUGIN_EVERY"
DEFAULT_EVERY = 8
HIGHEST_PORT = 65_535


class InvalidSettingError(ValueError):
    """A variable holds what the plugin cannot use; names it and the way out."""


class TargetKind(StrEnum):
    """What figures are written to."""

    FILE = "file"
    UNIX = "unix"
    UDP = "udp"


@dataclass(frozen=True)
class Target:
    """One place that figures go to."""

    kind: TargetKind
    address: str
    """Absolute path of a file or socket, or host of a UDP target."""
    port: int = 0

    @property
    def socket_address(self) -> str | tuple[str, int]:
        """The address as sockets take it."""
        return (self.address, self.port) if self.kind is TargetKind.UDP else self.address


@dataclass(frozen=True)
class PluginSettings:
    """Where figures go, and of which steps they are taken."""

    targets: tuple[Target, ...]
    every: int = DEFAULT_EVERY
    """Figures are taken of each answer's steps 0, n, 2n, ..."""


def read_settings(environment: Mapping[str, str]) -> PluginSettings | None:
    """Return the settings; None means that the plugin has nothing to do.

    Raises:
        InvalidSettingError: a variable is set, but not usable.
    """
    out = environment.get(OUT_VARIABLE, "")
    if not out:
        return None
    targets = tuple(read_target(part.strip()) for part in out.split(","))
    return PluginSettings(targets, _read_every(environment))


def read_target(text: str) -> Target:
    """Read `/absolute/file`, `unix:/absolute/socket` or `udp:HOST:PORT`.

    Raises:
        InvalidSettingError: it is none of these.
    """
    if text.startswith("udp:"):
        host, _, port = text.removeprefix("udp:").rpartition(":")
        if host and port.isascii() and port.isdigit() and 0 < int(port) <= HIGHEST_PORT:
            return Target(TargetKind.UDP, host, int(port))
        raise InvalidSettingError(f"{OUT_VARIABLE}: {text!r} is not udp:HOST:PORT; give one")
    kind = TargetKind.UNIX if text.startswith("unix:") else TargetKind.FILE
    address = text.removeprefix("unix:")
    if not Path(address).is_absolute():
        raise InvalidSettingError(f"{OUT_VARIABLE}: {text!r} is no absolute path; give one")
    return Target(kind, address)


def _read_every(environment: Mapping[str, str]) -> int:
    text = environment.get(EVERY_VARIABLE, str(DEFAULT_EVERY))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:  # noqa: PLR2004
        raise InvalidSettingError(
            f"{EVERY_VARIABLE}: {text!r} is no whole number from 1 to 10000; give one"
        )
    return int(text)
