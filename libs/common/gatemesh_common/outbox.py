"""Sending with the state: messages are stored in the transaction of the change, then relayed."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from prometheus_client import Gauge
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Table, Text, delete, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gatemesh_common.clock import Clock
from gatemesh_common.database import transaction
from gatemesh_common.errors import GatemeshError
from gatemesh_common.inbox import METADATA
from gatemesh_common.messages import Message
from gatemesh_common.publisher import CONTENT_TYPE, Publisher, envelope
from gatemesh_common.retrying import retry_passing_faults

log = logging.getLogger(__name__)

OUTBOX = Table(
    "outbox",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("message_id", Text, nullable=False, unique=True),
    Column("exchange", Text, nullable=False),
    Column("routing_key", Text, nullable=False),
    Column("mandatory", Boolean, nullable=False),
    Column("type", Text, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("available_at", DateTime(timezone=True), nullable=False, index=True),
)

STORE = insert(OUTBOX).inline().on_conflict_do_nothing()

LAG_SECONDS = Gauge(
    "gatemesh_outbox_lag_seconds",
    "For how long the oldest message has waited that may go, as of the last round.",
)
REFUSED_DELAY = timedelta(seconds=2)

HAND_OVER = timedelta(seconds=1)
"""For how long relays leave a message to the process that stored it and hands it over at once."""
MOST_HANDED_OVER = 1000
"""Messages under way past which more are left to the relays: the broker is slow, or away."""

OutboxRow = Mapping[str, Any]
Sign = Callable[[Message, bytes], Mapping[str, str]]
"""Returns the headers that prove a message's body; none where it is not to be proven."""


def unsigned(message: Message, body: bytes) -> Mapping[str, str]:
    """Prove nothing."""
    return {}


async def enqueue(
    connection: AsyncConnection,
    messages: Collection[tuple[Message, datetime]],
    app_id: str,
    now: datetime,
    sign: Sign = unsigned,
    *,
    kept_for: timedelta = timedelta(),
) -> list[OutboxRow]:
    """Store messages, each with the moment from which it may be sent; return those due now.

    Relays leave these to the caller for a while. Storing an id a second time changes nothing. What
    is to be signed is signed here, before it leaves the process: whoever can write into the
    database cannot forge it.
    """
    if not messages:
        return []
    rows = [
        outbox_row(message, due_at if due_at > now else now + kept_for, app_id, now, sign)
        for message, due_at in messages
    ]
    await connection.execute(STORE, rows)
    return [row for row, (_, due_at) in zip(rows, messages, strict=True) if due_at <= now]


def outbox_row(
    message: Message, available_at: datetime, app_id: str, now: datetime, sign: Sign = unsigned
) -> dict[str, Any]:
    """Return the row of one message."""
    ready = envelope(message, app_id)
    return {
        "message_id": message.message_id,
        "exchange": message.exchange,
        "routing_key": message.key(),
        "mandatory": message.mandatory,
        "type": ready.type,
        "headers": {**ready.headers, **sign(message, ready.body)},
        "body": ready.body.decode(),
        "created_at": now,
        "available_at": available_at,
    }


@dataclass
class Lag:
    """For how long messages have waited that may go.

    What the broker refuses is put off, and its row tells no more since when it may go.
    """

    refused_since: datetime | None = None
    refused_at: datetime | None = None

    def after_round(self, due_since: datetime, now: datetime, *, refused: bool) -> float:
        """Return the lag in seconds after a round; `due_since` is its oldest message's."""
        if refused:
            self.refused_since = min(self.refused_since or due_since, due_since)
            self.refused_at = now
        elif self.refused_at is None or now - self.refused_at > 2 * REFUSED_DELAY:
            self.refused_since = None
        oldest = min(due_since, self.refused_since or due_since)
        return max((now - oldest).total_seconds(), 0.0)


class Relay:
    """Sends what the outbox holds, oldest first, and deletes each message once confirmed.

    What this process has just stored can be handed over: it is sent from memory, and its row is
    deleted with the next round. The row is for the case that the process dies in between.
    """

    def __init__(
        self, engine: AsyncEngine, publisher: Publisher, app_id: str, clock: Clock, batch: int = 100
    ) -> None:
        self._engine = engine
        self._publisher = publisher
        self._app_id = app_id
        self._clock = clock
        self._batch = batch
        self._lag = Lag()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._sent: set[str] = set()
        """Handed over and confirmed; their rows are still there."""
        self._stopped = False

    def hand_over(self, rows: Sequence[OutboxRow]) -> None:
        """Send messages now; call it after the commit that stored them.

        Whoever has stopped leaves them to others.
        """
        for row in rows:
            name = row["message_id"]
            free = not self._stopped and len(self._under_way) < MOST_HANDED_OVER
            if free and not self._has(name):
                self._under_way[name] = asyncio.create_task(self._send_now(row))

    def _has(self, message_id: str) -> bool:
        return message_id in self._under_way or message_id in self._sent

    async def _send_now(self, row: OutboxRow) -> None:
        try:
            if await self._send_row(row):
                self._sent.add(row["message_id"])
        finally:
            del self._under_way[row["message_id"]]

    async def run(self, *, idle_s: float = 0.25) -> None:
        """Relay until cancelled; looks every `idle_s` seconds for what was not handed over."""
        try:
            while True:
                if await retry_passing_faults(self.relay_once) == 0:
                    await asyncio.sleep(idle_s)
        finally:
            self._stopped = True
            await self._finish()

    async def _finish(self) -> None:
        """Leave no row of what was sent, as far as the database can be reached."""
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        with suppress(GatemeshError):
            async with transaction(self._engine) as connection:
                await self._forget(connection, list(self._sent))

    async def _forget(self, connection: AsyncConnection, sent: Sequence[str]) -> None:
        if sent:
            await connection.execute(delete(OUTBOX).where(OUTBOX.c.message_id.in_(sent)))

    async def relay_once(self) -> int:
        """Send one batch; return how many were confirmed.

        The rows stay locked while they are sent, so that two relays never send the same one.

        Raises:
            DatabaseUnavailableError: rows that were sent may be sent again.
        """
        now, done = self._clock(), list(self._sent)
        async with transaction(self._engine) as connection:
            await self._forget(connection, done)
            due = (
                select(OUTBOX)
                .where(OUTBOX.c.available_at <= now)
                .where(OUTBOX.c.message_id.not_in([*self._under_way, *self._sent]))
                .order_by(OUTBOX.c.id)
                .limit(self._batch)
                .with_for_update(skip_locked=True)
            )
            found = (await connection.execute(due)).mappings().all()
            rows = [row for row in found if not self._has(row["message_id"])]
            sent, refused = await self._send(rows)
            if sent:
                await connection.execute(delete(OUTBOX).where(OUTBOX.c.id.in_(sent)))
            if refused:
                await connection.execute(
                    update(OUTBOX)
                    .where(OUTBOX.c.id.in_(refused))
                    .values(available_at=now + REFUSED_DELAY)
                )
        self._sent.difference_update(done)
        due_since = rows[0]["available_at"] if rows else now
        LAG_SECONDS.set(self._lag.after_round(due_since, now, refused=bool(refused)))
        return len(sent)

    async def _send(self, rows: Sequence[Any]) -> tuple[list[int], list[int]]:
        outcomes = await asyncio.gather(*(self._send_row(row) for row in rows))
        sent = [row["id"] for row, ok in zip(rows, outcomes, strict=True) if ok]
        refused = [row["id"] for row, ok in zip(rows, outcomes, strict=True) if not ok]
        return sent, refused

    async def _send_row(self, row: Any) -> bool:
        message = AmqpMessage(
            row["body"].encode(),
            content_type=CONTENT_TYPE,
            delivery_mode=DeliveryMode.PERSISTENT,
            message_id=row["message_id"],
            type=row["type"],
            timestamp=row["created_at"],
            app_id=self._app_id,
            headers=row["headers"],
        )
        try:
            await self._publisher.publish_raw(
                message, row["exchange"], row["routing_key"], mandatory=row["mandatory"]
            )
        except GatemeshError as error:
            log.warning(
                "outbox_message_refused",
                extra={"message_id": row["message_id"], "error": str(error)},
            )
            return False
        return True
