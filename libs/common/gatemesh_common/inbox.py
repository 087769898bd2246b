"""Seeing each message once: ids are kept in the transaction of the change they caused."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Column, DateTime, MetaData, Table, Text, delete, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_common.database import Answer, Query, ask_together

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
    [known] = await ask_together(connection, [seeing(queue, message_ids, now)])
    return unknown(message_ids, known)


def seeing(queue: str, message_ids: Collection[str], now: datetime) -> Query:
    """Return the query that records message ids; `unknown` reads its answer."""
    # In one order, so that two readers of the same messages never wait in a circle.
    return Query(SEE, {"queue": queue, "ids": sorted(set(message_ids)), "now": now})


def unknown(message_ids: Collection[str], known: Answer) -> set[str]:
    """Return the ids that were never seen before."""
    return set(message_ids).difference(row["id"] for row in known)


async def forget_before(connection: AsyncConnection, moment: datetime) -> int:
    """Delete ids older than any redelivery can be; return how many."""
    result = await connection.execute(delete(INBOX).where(INBOX.c.seen_at < moment))
    return result.rowcount
