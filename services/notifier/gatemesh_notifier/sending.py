"""Sending through apprise: one plugin per target, in threads, quiet about addresses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from apprise import Apprise, AppriseAsset, NotifyBase, NotifyFormat, NotifyType, OverflowMode

from gatemesh_common.errors import SettingsError
from gatemesh_notifier.facts import Level
from gatemesh_notifier.targets import Target
from gatemesh_notifier.wording import Text

log = logging.getLogger(__name__)

Send = Callable[[Text], Awaitable[bool]]
"""Delivers one text; False when the other side did not take it."""


class Plugin(Protocol):
    """What apprise makes of an address."""

    def notify(self, *args: Any, **kwargs: Any) -> bool:
        """Send a text; False when the other side did not take it."""


TYPES: dict[Level, NotifyType] = {
    Level.PAGE: NotifyType.FAILURE,
    Level.WARNING: NotifyType.WARNING,
    Level.NOTE: NotifyType.INFO,
    Level.QUIET: NotifyType.SUCCESS,
}
TRY_DEADLINE_S = 60.0
OUR_LOGS = ("gatemesh_", "__main__", "aio_pika", "aiormq", "faststream")


class OursOnly(logging.Filter):
    """Lets no other library log: what speaks to a target may name its address."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True for records of our own and of the broker's client."""
        return record.name.startswith(OUR_LOGS)


def keep_addresses_out_of_logs() -> None:
    """Let only our own records through, whatever the level."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(OursOnly())


def open_target(target: Target) -> NotifyBase:
    """Return the plugin of a target.

    Raises:
        SettingsError: apprise does not take the address; it is not repeated.
    """
    url = target.url.get_secret_value()
    asset = AppriseAsset(app_id="gatemesh", app_desc="gatemesh", secure_logging=True)
    plugin = Apprise.instantiate(url, asset=asset)
    if plugin is None:
        raise SettingsError(
            f"target {target.name!r}: apprise does not know this kind of address, or a part of it "
            "is missing; see docs/notifier.md"
        )
    if "overflow" not in parse_qs(urlsplit(url).query):
        # Too long for a service, a message loses its end rather than being refused.
        plugin.overflow_mode = OverflowMode.TRUNCATE
    return plugin


def sender(target: Target, plugin: Plugin, deadline_s: float = TRY_DEADLINE_S) -> Send:
    """Return what delivers to a target; it raises nothing."""

    def notify(text: Text) -> bool:
        kind = TYPES[text.level]
        try:
            sent = plugin.notify(
                text.body, text.title, notify_type=kind, body_format=NotifyFormat.TEXT
            )
        except Exception as error:  # noqa: BLE001 (the top of a thread that runs a plugin)
            facts = {"target": target.name, "error": type(error).__name__}
            log.error("plugin_failed", extra=facts)  # noqa: TRY400 (its text may hold the address)
            return False
        return bool(sent)

    async def send(text: Text) -> bool:
        try:
            async with asyncio.timeout(deadline_s):
                return await asyncio.to_thread(notify, text)
        except TimeoutError:
            return False

    return send
