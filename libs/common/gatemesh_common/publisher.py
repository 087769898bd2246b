"""Sending: confirmed, mandatory where a reader is obliged, and never without a deadline."""

import asyncio
from types import TracebackType
from typing import Self

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import (
    AMQPError,
    ChannelInvalidStateError,
    ChannelNotFoundEntity,
    DeliveryError,
    PublishError,
)

from gatemesh_common.errors import BrokerRefusedError, BrokerUnavailableError, UnroutableError
from gatemesh_common.messages import Message

CONTENT_TYPE = "application/json"


def envelope(message: Message, app_id: str) -> aio_pika.Message:
    """Wrap a message: persistent JSON with CloudEvents-shaped headers and W3C trace context."""
    headers: dict[str, str] = {
        "cloudEvents:specversion": "1.0",
        "cloudEvents:id": message.message_id,
        "cloudEvents:type": f"gatemesh.{message.routing_key}",
        "cloudEvents:source": f"/gatemesh/{app_id}",
        "cloudEvents:time": message.timestamp.isoformat(),
    }
    if message.traceparent:
        headers["traceparent"] = message.traceparent
    return aio_pika.Message(
        message.model_dump_json(exclude_none=True).encode(),
        content_type=CONTENT_TYPE,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=message.message_id,
        type=type(message).__name__,
        timestamp=message.timestamp,
        app_id=app_id,
        headers=dict(headers),
    )


class Publisher:
    """Publishes on a connection and channel of its own, opened anew whenever one was closed.

    A channel that the broker closed (a forbidden key, say) would refuse every later publish, so it
    is never kept.
    """

    def __init__(self, amqp_url: str, app_id: str, deadline_s: float = 5.0) -> None:
        self._amqp_url = amqp_url
        self._app_id = app_id
        self._deadline_s = deadline_s
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._exchanges: dict[str, AbstractExchange] = {}
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def publish(self, message: Message) -> None:
        """Send one message and wait for the broker's confirmation.

        Raises:
            BrokerUnavailableError: no confirmation within the deadline; send it again.
            UnroutableError: mandatory, and no queue is bound to its key.
            BrokerRefusedError: the broker refuses it for good.
        """
        body = envelope(message, self._app_id)
        await self.publish_raw(body, message.exchange, message.key(), mandatory=message.mandatory)

    async def publish_raw(
        self, body: aio_pika.Message, exchange: str, key: str, *, mandatory: bool
    ) -> None:
        """Send a ready envelope; raises as `publish` does."""
        try:
            async with asyncio.timeout(self._deadline_s):
                target = await self._exchange(exchange)
                await target.publish(body, key, mandatory=mandatory)
        except PublishError as error:
            raise UnroutableError(exchange, key) from error
        except DeliveryError as error:
            raise BrokerUnavailableError("the broker answered nack, a queue is full") from error
        except ChannelNotFoundEntity as error:
            self._forget_channel()
            raise BrokerRefusedError(f"exchange {exchange!r} does not exist") from error
        except ChannelInvalidStateError as error:
            self._forget_channel()
            raise BrokerUnavailableError("the channel was closed by the broker") from error
        except TimeoutError as error:
            self._forget_channel()
            raise BrokerUnavailableError(f"no confirmation in {self._deadline_s} s") from error
        except (AMQPError, OSError, RuntimeError) as error:
            self._forget_channel()
            raise BrokerUnavailableError(f"broker connection failed: {type(error).__name__}") from (
                error
            )

    async def channel(self) -> AbstractChannel:
        """Return an open channel with confirms; opens connection and channel where needed."""
        async with self._opening:
            if self._connection is None or self._connection.is_closed:
                self._connection = await aio_pika.connect(self._amqp_url)
                self._forget_channel()
            if self._channel is None or self._channel.is_closed:
                self._exchanges.clear()
                self._channel = await self._connection.channel(on_return_raises=True)
            return self._channel

    async def close(self) -> None:
        """Close the connection; later publishes open a new one."""
        connection, self._connection = self._connection, None
        self._forget_channel()
        if connection is not None:
            await connection.close()

    async def _exchange(self, name: str) -> AbstractExchange:
        channel = await self.channel()
        if name not in self._exchanges:
            self._exchanges[name] = await channel.get_exchange(name, ensure=False)
        return self._exchanges[name]

    def _forget_channel(self) -> None:
        self._channel = None
        self._exchanges.clear()
