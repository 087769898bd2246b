"""A bounded, durable spool: what was put survives a kill; what does not fit is counted."""

import contextlib
import logging
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import aio_pika
import orjson

from gatemesh_agent.metrics import SPOOL_DEPTH, SPOOL_DROPPED, SPOOL_FAULTS
from gatemesh_common.messages import Message, TelemetryWindow, Verdict
from gatemesh_common.publisher import CONTENT_TYPE, envelope

log = logging.getLogger(__name__)

TABLE = """
CREATE TABLE IF NOT EXISTS spool (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    urgency INTEGER NOT NULL,
    message_id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    exchange TEXT NOT NULL,
    routing_key TEXT NOT NULL,
    mandatory INTEGER NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    timestamp REAL NOT NULL,
    retry_at REAL NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS by_urgency ON spool (urgency, id);
"""

COLUMNS = "urgency, message_id, type, exchange, routing_key, mandatory, headers, body, timestamp"

LOCK_S = 0.5
"""Longest wait for another process that holds the file; traffic waits meanwhile."""

VERDICT, OTHER, TELEMETRY = 0, 1, 2
"""Urgency: a backlog of windows never delays a verdict, and is the first to go."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """One message as it lies in the spool."""

    row_id: int
    exchange: str
    routing_key: str
    mandatory: bool
    message: aio_pika.Message


class Spool:
    """Messages on disk until the broker has confirmed them; traffic never waits for it."""

    def __init__(self, path: Path, app_id: str, max_messages: int) -> None:
        self._app_id = app_id
        self._max_messages = max_messages
        self._database = open_database(path)
        self._depth = int(self._database.execute("SELECT count(*) FROM spool").fetchone()[0])
        SPOOL_DEPTH.set(self._depth)

    @property
    def depth(self) -> int:
        """How many messages wait."""
        return self._depth

    def put(self, message: Message) -> bool:
        """Store a message; False when the disk refused, which is logged and counted."""
        try:
            self._make_room()
            with self._database:
                self._insert(message)
        except sqlite3.Error as error:
            SPOOL_FAULTS.inc()
            log.exception("spool_fault", extra={"error": type(error).__name__})
            return False
        self._count(1)
        return True

    def due(self, now: float, limit: int) -> list[Spooled]:
        """Return what is to be sent, verdicts first, then by age."""
        rows = self._database.execute(
            "SELECT id, message_id, type, exchange, routing_key, mandatory, headers, body, "
            "timestamp FROM spool WHERE retry_at <= ? ORDER BY urgency, id LIMIT ?",
            (now, limit),
        )
        return [self._spooled(row) for row in rows]

    def delete(self, row_ids: Collection[int]) -> None:
        """Forget messages that the broker has confirmed."""
        with self._database:
            deleted = self._database.executemany(
                "DELETE FROM spool WHERE id = ?", [(row_id,) for row_id in row_ids]
            )
        self._count(-deleted.rowcount)

    def postpone(self, row_ids: Collection[int], until: float) -> None:
        """Keep messages that the broker refused, to be tried again later."""
        with self._database:
            self._database.executemany(
                "UPDATE spool SET retry_at = ? WHERE id = ?",
                [(until, row_id) for row_id in row_ids],
            )

    def close(self) -> None:
        """Close the file; what it holds stays."""
        self._database.close()

    def _insert(self, message: Message) -> None:
        ready = envelope(message, self._app_id)
        row = (
            urgency_of(message),
            message.message_id,
            type(message).__name__,
            message.exchange,
            message.key(),
            message.mandatory,
            orjson.dumps(dict(ready.headers)),
            ready.body,
            message.timestamp.timestamp(),
        )
        marks = ", ".join("?" * len(row))
        self._database.execute(f"INSERT INTO spool ({COLUMNS}) VALUES ({marks})", row)  # noqa: S608

    def _make_room(self) -> None:
        while self._depth >= self._max_messages:
            row_id, kind = self._expendable()
            self.delete([row_id])
            SPOOL_DROPPED.labels(type=kind).inc()
            log.error("spool_full", extra={"dropped": kind, "limit": self._max_messages})

    def _expendable(self) -> tuple[int, str]:
        """The oldest telemetry window, else the oldest message of any kind."""
        return self._database.execute(  # type: ignore[no-any-return]
            "SELECT id, type FROM spool ORDER BY urgency = ? DESC, id LIMIT 1", (TELEMETRY,)
        ).fetchone()

    def _spooled(self, row: tuple[int, str, str, str, str, int, bytes, bytes, float]) -> Spooled:
        row_id, message_id, kind, exchange, key, mandatory, headers, body, timestamp = row
        message = aio_pika.Message(
            body,
            content_type=CONTENT_TYPE,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=message_id,
            type=kind,
            timestamp=timestamp,
            app_id=self._app_id,
            headers=orjson.loads(headers),
        )
        return Spooled(row_id, exchange, key, bool(mandatory), message)

    def _count(self, change: int) -> None:
        self._depth += change
        SPOOL_DEPTH.set(self._depth)


def urgency_of(message: Message) -> int:
    """Return how soon a message is to be sent: verdicts first, telemetry last."""
    if isinstance(message, Verdict):
        return VERDICT
    return TELEMETRY if isinstance(message, TelemetryWindow) else OTHER


def open_database(path: Path) -> sqlite3.Connection:
    """Open the spool file, whatever is wrong with it: traffic must not wait for a disk.

    One that is damaged is put aside and begun anew. Where the disk takes none, messages are kept
    in memory until they are sent.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open_file(path)
    except (OSError, sqlite3.OperationalError) as error:
        SPOOL_FAULTS.inc()
        log.critical("spool_in_memory", extra={"folder": path.parent.name, "error": str(error)})
        return prepare(sqlite3.connect(":memory:"))


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file; one that is damaged is put aside and begun anew."""
    try:
        return prepare(connect(path))
    except sqlite3.OperationalError:
        # Full, locked or forbidden: what it holds is whole.
        raise
    except sqlite3.DatabaseError as error:
        aside = path.with_suffix(f".damaged-{datetime.now().astimezone():%Y%m%dT%H%M%S}")
        log.critical("spool_damaged", extra={"kept_as": aside.name, "error": str(error)})
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").unlink()
        return prepare(connect(path))


def connect(path: Path) -> sqlite3.Connection:
    """Open a file that only its owner may read."""
    database = sqlite3.connect(path, timeout=LOCK_S)
    path.chmod(0o600)
    return database


def prepare(database: sqlite3.Connection) -> sqlite3.Connection:
    """Make the table.

    Raises:
        sqlite3.DatabaseError: it is no database, or damaged.
    """
    # A commit is in the file when it returns; only a fall of the whole machine can lose it.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.executescript(TABLE)
    return database
