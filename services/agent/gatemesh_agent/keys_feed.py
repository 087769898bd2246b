"""Follows the file of API keys: a change holds within a second, a fault changes nothing."""

import asyncio
import logging
from pathlib import Path

from gatemesh_agent.door import Door
from gatemesh_agent.keys import ApiKey, KeysUnreadableError, Limits, read_keys, text_in
from gatemesh_agent.metrics import KEYS, KEYS_INVALID
from gatemesh_agent.worker_share import keys_of
from gatemesh_common.errors import SettingsError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
Mark = tuple[int, int, int]


class KeysFeed:
    """Brings a file's keys to the door."""

    def __init__(self, path: Path, defaults: Limits, door: Door, *, workers: int = 1) -> None:
        self._workers = workers
        self._path = path
        self._defaults = defaults
        self._door = door
        self._seen: Mark | None = None
        self._fault = ""

    def open(self) -> None:
        """Read the keys for the first time.

        Raises:
            SettingsError: the file cannot be read; an agent that must check keys does not start.
        """
        try:
            self._take(self._read())
        except (OSError, KeysUnreadableError) as error:
            raise SettingsError(f"GATEMESH_AGENT_KEYS_FILE: {self._path}: {error}") from None

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.look()

    def look(self) -> None:
        """Take in the file if it has changed; keep the keys of before if it is at fault."""
        try:
            if mark_of(self._path) == self._seen:
                return
            self._take(self._read())
        except OSError as error:
            # Rights that are mended leave no mark: it is tried until it can be read.
            self._seen = None
            self._tell(str(error))
        except KeysUnreadableError as error:
            self._tell(str(error))

    def _tell(self, fault: str) -> None:
        KEYS_INVALID.set(1)
        if fault != self._fault:
            log.warning("keys_invalid", extra={"file": str(self._path), "error": fault})
        self._fault = fault

    def _read(self) -> dict[bytes, ApiKey]:
        # Marked first: what is written meanwhile is read at the next look.
        self._seen = mark_of(self._path)
        return keys_of(read_keys(text_in(self._path), self._defaults), self._workers)

    def _take(self, keys: dict[bytes, ApiKey]) -> None:
        self._door.replace(keys)
        KEYS.set(len(keys))
        KEYS_INVALID.set(0)
        self._fault = ""
        log.info("keys_read", extra={"keys": len(keys)})


def mark_of(path: Path) -> Mark:
    """Return what differs once a file has been written anew."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
