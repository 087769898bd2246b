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
    """
    WITH given AS (SELECT unnest(CAST(:ids AS text[])) AS id),
        fresh AS (
            INSERT INTO inbox (queue, message_id, seen_at) SELECT :queue, id, :now FROM given
            ON CONFLICT DO NOTHING RETURNING message_id
        )
    SELECT id FROM given WHERE id NOT IN (SELECT message_id FROM fresh)"""
)
"""One statement and one array, whatever the number of ids; answers those known before, mostly none.
"""


async def first_seen(
    connection: AsyncConnection, queue: str, message_ids: Collection[str], now: datetime
) -> set[str]:
    """Record message ids and return those never seen before on this queue.

    Another transaction that is handling the same id is waited for.
    """
    if not message_ids:
        return set()
    # In one order, so that two readers of the same messages never wait in a circle.
    given = set(message_ids)
    query = {"queue": queue, "ids": sorted(given), "now": now}
    return given.difference((await connection.execute(SEE, query)).scalars())


async def forget_before(connection: AsyncConnection, moment: datetime) -> int:
    """Delete ids older than any redelivery can be; return how many."""
    result = await connection.execute(delete(INBOX).where(INBOX.c.seen_at < moment))
    return result.rowcount
