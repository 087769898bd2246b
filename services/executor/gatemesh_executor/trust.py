"""Whose commands are obeyed: public keys from the settings, read again when their file changes."""

import logging
from collections.abc import Mapping
from pathlib import Path

from gatemesh_common.errors import SettingsError
from gatemesh_common.signing import KEY_HEADER, Distrust, KeyUnreadableError, TrustedKeys
from gatemesh_executor.settings import ExecutorSettings

log = logging.getLogger(__name__)

VARIABLE = "GATEMESH_EXECUTOR_TRUSTED_KEYS"
SHOWN_SIGNS = 40
"""Signs of a stranger's key id that are repeated in a report."""
Stamp = tuple[int, int, int] | None
"""What tells one version of a file from another; None while there is no file."""


class Trust:
    """Keys that stay as they are, or none at all: then whatever arrives is obeyed."""

    def __init__(self, keys: TrustedKeys | None = None) -> None:
        self._keys = keys

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the trusted keys."""
        return self._keys.key_ids if self._keys else ()

    def distrust(self, body: bytes, headers: Mapping[str, object]) -> str | None:
        """Return why a command must not be obeyed, as its report says it; None when it may."""
        if self._keys is None:
            return None
        why = self._keys.distrust(body, headers)
        if why is Distrust.UNKNOWN_KEY:
            return f"{why}: {str(headers.get(KEY_HEADER))[:SHOWN_SIGNS]!r}"
        return why.value if why else None


class TrustFromFile(Trust):
    """The keys of a file, looked at with every command."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp = stamp_of(file)
        super().__init__(read_keys(file))

    def distrust(self, body: bytes, headers: Mapping[str, object]) -> str | None:
        """Take over what the file says by now, then judge."""
        stamp = stamp_of(self._file)
        if stamp != self._stamp:
            self._stamp = stamp
            self._read_again()
        return super().distrust(body, headers)

    def _read_again(self) -> None:
        """Take over the keys; from a file that cannot be read nothing is taken over."""
        try:
            self._keys = read_keys(self._file)
        except (OSError, UnicodeDecodeError, KeyUnreadableError) as error:
            log.error("trusted_keys_not_read", extra={"error": describe(error)})  # noqa: TRY400
        else:
            log.info("trusted_keys_changed", extra={"key_ids": self._keys.key_ids})


def stamp_of(file: Path) -> Stamp:
    """Return what changes with every change of a file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read_keys(file: Path) -> TrustedKeys:
    """Return the keys of a file."""
    return TrustedKeys.from_pem(file.read_text(encoding="utf-8"))


def describe(error: Exception) -> str:
    """Say what is wrong with a file of keys, without its text."""
    known = isinstance(error, KeyUnreadableError)
    return str(error) if known else f"cannot be read: {type(error).__name__}"


def load_trust(settings: ExecutorSettings) -> Trust:
    """Return whom the settings trust, and say it in the log.

    Raises:
        SettingsError: there are no keys where the settings say that there are.
    """
    file, text = settings.trusted_keys_file, settings.trusted_keys
    if file and text:
        raise SettingsError(f"cannot start: set {VARIABLE} or {VARIABLE}_FILE, not both")
    if not file and not text:
        log.warning("commands_not_verified", extra={"cure": f"set {VARIABLE}_FILE"})
        return Trust()
    place = f"{VARIABLE}_FILE: {file}" if file else VARIABLE
    try:
        trust = TrustFromFile(file) if file else Trust(TrustedKeys.from_pem(text))
    except (OSError, UnicodeDecodeError, KeyUnreadableError) as error:
        raise SettingsError(f"cannot start: {place}: {describe(error)}") from None
    if not trust.key_ids:
        raise SettingsError(f"cannot start: {place}: no PUBLIC KEY in PEM form is there")
    log.info("commands_verified", extra={"key_ids": trust.key_ids})
    return trust
