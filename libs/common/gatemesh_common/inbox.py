"""Seeing each message once: ids are kept in the transaction of the change they caused."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Column, DateTime, MetaData, Table, Text, delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

METADATA = MetaData()

INBOX = Table(
    "inbox",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("seen_at", DateTime(timezone=True), nullable=False, index=True),
)


async def first_seen(
    connection: AsyncConnection, queue: str, message_ids: Collection[str], now: datetime
) -> set[str]:
    """Record message ids and return those never seen before on this queue.

    Another transaction that is handling the same id is waited for.
    """
    if not message_ids:
        return set()
    rows = [
        {"queue": queue, "message_id": message_id, "seen_at": now}
        for message_id in sorted(set(message_ids))
    ]
    statement = insert(INBOX).values(rows).on_conflict_do_nothing().returning(INBOX.c.message_id)
    return set((await connection.execute(statement)).scalars())


async def forget_before(connection: AsyncConnection, moment: datetime) -> int:
    """Delete ids older than any redelivery can be; return how many."""
    result = await connection.execute(delete(INBOX).where(INBOX.c.seen_at < moment))
    return result.rowcount
