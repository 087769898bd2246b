"""Which messages the manager signs, and with which key."""

import logging
from collections.abc import Mapping

from gatemesh_common.errors import SettingsError
from gatemesh_common.messages import InstanceCommand, Message
from gatemesh_common.outbox import Sign, unsigned
from gatemesh_common.signing import KeyUnreadableError, SigningKey
from gatemesh_health_manager.settings import HealthManagerSettings

log = logging.getLogger(__name__)

VARIABLE = "GATEMESH_HEALTH_MANAGER_SIGNING_KEY"


def load_signing_key(settings: HealthManagerSettings) -> SigningKey | None:
    """Return the key that the settings name; None where they name none.

    Raises:
        SettingsError: it cannot be used; names the variable, never the key.
    """
    file, text = settings.signing_key_file, settings.signing_key
    if file and text:
        raise SettingsError(f"cannot start: set {VARIABLE} or {VARIABLE}_FILE, not both")
    try:
        if file:
            return SigningKey.from_pem(file.read_text(encoding="utf-8"))
        return SigningKey.from_pem(text.get_secret_value()) if text else None
    except (OSError, UnicodeDecodeError) as error:
        what = type(error).__name__
        raise SettingsError(
            f"cannot start: {VARIABLE}_FILE: {file} cannot be read: {what}"
        ) from None
    except KeyUnreadableError as error:
        place = f"{VARIABLE}_FILE: {file}" if file else VARIABLE
        raise SettingsError(
            f"cannot start: {place}: {error}; gatemesh-ctl keys new makes one"
        ) from None


def command_signer(key: SigningKey | None) -> Sign:
    """Return what signs commands, and nothing but commands; say in the log what it does."""
    if key is None:
        log.warning("commands_not_signed")
        return unsigned
    log.info("commands_signed", extra={"key_id": key.key_id})

    def sign(message: Message, body: bytes) -> Mapping[str, str]:
        return key.sign(body) if isinstance(message, InstanceCommand) else {}

    return sign
