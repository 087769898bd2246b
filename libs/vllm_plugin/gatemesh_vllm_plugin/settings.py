"""What the plugin is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OUT_VARIABLE = "GATEMESH_PLUGIN_OUT"
EVERY_VARIABLE = "GATEMESH_PLUGIN_EVERY"
DEFAULT_EVERY = 8
SOCKET_PREFIX = "unix:"


class InvalidSettingError(ValueError):
    """A variable holds what the plugin cannot use; names it and the way out."""


@dataclass(frozen=True)
class PluginSettings:
    """Where figures go, and of which steps they are taken."""

    target: Path
    is_socket: bool = False
    """True: a Unix datagram socket that someone reads; False: a file to append to."""
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
    is_socket = out.startswith(SOCKET_PREFIX)
    target = Path(out.removeprefix(SOCKET_PREFIX))
    if not target.is_absolute():
        raise InvalidSettingError(f"{OUT_VARIABLE}: {out!r} is no absolute path; give one")
    return PluginSettings(target, is_socket, _read_every(environment))


def _read_every(environment: Mapping[str, str]) -> int:
    text = environment.get(EVERY_VARIABLE, str(DEFAULT_EVERY))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:  # noqa: PLR2004
        raise InvalidSettingError(
            f"{EVERY_VARIABLE}: {text!r} is no whole number from 1 to 10000; give one"
        )
    return int(text)
