"""Seeing each message once: ids are kept in the transaction of the change they caused."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Column, DateTime, MetaData, Table, Text, delete, text
from sqlalchemy.ext.asyncio import AsyncConnection

METADATA = MetaData()

INBOX = Table(
    "inbox",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("seen_at", DateTime(timezone=True), nullable=False, index=True),
)

SEE = text(
    "INSERT INTO inbox (queue, message_id, seen_at) "
    "SELECT :queue, unnest(CAST(:ids AS text[])), :now ON CONFLICT DO NOTHING RETURNING message_id"
)
"""One statement and one array, whatever the number of ids."""


async def first_seen(
    connection: AsyncConnection, queue: str, message_ids: Collection[str], now: datetime
) -> set[str]:
    """Record message ids and return those never seen before on this queue.

    Another transaction that is handling the same id is waited for.
    """
    if not message_ids:
        return set()
    # In one order, so that two readers of the same messages never wait in a circle.
    known = {"queue": queue, "ids": sorted(set(message_ids)), "now": now}
    return set((await connection.execute(SEE, known)).scalars())


async def forget_before(connection: AsyncConnection, moment: datetime) -> int:
    """Delete ids older than any redelivery can be; return how many."""
    result = await connection.execute(delete(INBOX).where(INBOX.c.seen_at < moment))
    return result.rowcount
