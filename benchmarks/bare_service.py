"""The least that a service can do between a message and its answer: what no manager can beat."""

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
import psycopg
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from pamqp.common import FieldTable

from gatemesh_mesh import postgres


class BareService:
    """Takes a message from a quorum queue, commits one row, and answers; and hears the answers."""

    def __init__(self, channel: AbstractChannel, database: "psycopg.AsyncConnection") -> None:
        self._channel = channel
        self._database = database
        self._queue = f"bare.{uuid.uuid4().hex[:8]}"
        self._began: dict[str, float] = {}
        self.took_s: dict[str, float] = {}

    async def open(self) -> None:
        """Begin to serve and to hear."""
        await self._database.execute("CREATE TABLE bare_messages (body text)")
        quorum: FieldTable = {"x-queue-type": "quorum"}
        asked = await self._channel.declare_queue(self._queue, durable=True, arguments=quorum)
        await asked.consume(self._serve)
        heard = await self._channel.declare_queue(f"{self._queue}.answers", exclusive=True)
        await heard.consume(self._hear, no_ack=True)

    async def ask(self, body: bytes) -> None:
        """Send one message."""
        name = uuid.uuid4().hex
        self._began[name] = time.perf_counter()
        await self._send(body, name, self._queue)

    async def _serve(self, message: AbstractIncomingMessage) -> None:
        insert = "INSERT INTO bare_messages VALUES (%s)"
        await self._database.execute(insert, [message.body.decode()])
        await self._send(message.body, message.message_id or "", f"{self._queue}.answers")
        await message.ack()

    async def _hear(self, message: AbstractIncomingMessage) -> None:
        name = message.message_id or ""
        self.took_s[name] = time.perf_counter() - self._began[name]

    async def _send(self, body: bytes, name: str, queue: str) -> None:
        durable = aio_pika.DeliveryMode.PERSISTENT
        message = aio_pika.Message(body, message_id=name, delivery_mode=durable)
        await self._channel.default_exchange.publish(message, queue)


@asynccontextmanager
async def bare_service(amqp_url: str, url: str) -> AsyncIterator[BareService]:
    """Give one at work, over a connection of its own, in this process."""
    async with (
        await aio_pika.connect(amqp_url) as connection,
        connection.channel(publisher_confirms=False) as channel,
        await psycopg.AsyncConnection.connect(postgres.plain_url(url), autocommit=True) as database,
    ):
        service = BareService(channel, database)
        await service.open()
        yield service
