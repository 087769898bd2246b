"""What was told to whom, on disk: a message that comes again after a restart is told once."""

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gatemesh_common.errors import SettingsError
from gatemesh_notifier.facts import Level
from gatemesh_notifier.grouping import Line

log = logging.getLogger(__name__)

SCHEMA = """
CREATE TABLE IF NOT EXISTS told (
    target TEXT NOT NULL,
    message_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    word TEXT NOT NULL,
    level TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (target, message_id)
)
"""
FILE_NAME = "told.sqlite3"


class Journal:
    """A small file that outlives the process; written once a notification is delivered."""

    def __init__(self, folder: Path) -> None:
        """Open or make it.

        Raises:
            SettingsError: the folder cannot be written, or holds something else.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(
                f"GATEMESH_NOTIFIER_STATE_DIR: {folder} cannot be used ({error}); name a folder "
                "that the notifier may write and that holds nothing else"
            ) from error

    def has(self, target: str, message_id: str) -> bool:
        """True when the target was told of this message; what cannot be looked up is told again."""
        query = "SELECT 1 FROM told WHERE target = ? AND message_id = ?"
        try:
            return self._file.execute(query, (target, message_id)).fetchone() is not None
        except sqlite3.Error as error:
            log.warning("journal_not_read", extra={"error": type(error).__name__})
            return False

    def write(self, target: str, lines: Iterable[Line], now: datetime) -> bool:
        """Keep that a target was told of some lines; False when the disk does not take it.

        That is no reason to end: after the next start the same would be told again.
        """
        rows = [
            (target, one, line.fact.subject, line.fact.word, line.fact.level, now.timestamp())
            for line in lines
            # Alerts are not sent again by anyone.
            if not line.fact.is_alert
            for one in line.message_ids
        ]
        try:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            log.exception("journal_not_written", extra={"error": type(error).__name__})
            with suppress(sqlite3.Error):
                self._file.execute("ROLLBACK")
            return False
        return True

    def last_words(self, target: str) -> dict[str, str]:
        """Return the last word told of each subject that is not over."""
        query = "SELECT subject, word, level FROM told WHERE target = ? ORDER BY at, rowid"
        last = {
            subject: (word, level) for subject, word, level in self._file.execute(query, (target,))
        }
        return {subject: word for subject, (word, level) in last.items() if level != Level.QUIET}

    def forget(self, before: datetime) -> int:
        """Drop what is older; return how much that was."""
        try:
            deleted = self._file.execute("DELETE FROM told WHERE at < ?", (before.timestamp(),))
        except sqlite3.Error as error:
            log.warning("journal_not_shortened", extra={"error": type(error).__name__})
            return 0
        return deleted.rowcount

    def close(self) -> None:
        """Close the file."""
        self._file.close()
