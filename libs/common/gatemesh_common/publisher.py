"""Sending: confirmed, mandatory where a reader is obliged, and never without a deadline."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import (
    AMQPError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from aiormq.exceptions import ChannelAccessRefused

from gatemesh_common.errors import (
    BrokerRefusedError,
    BrokerUnavailableError,
    GatemeshError,
    UnroutableError,
)
from gatemesh_common.messages import Message
from gatemesh_common.metrics import PUBLISH_FAILURES, PUBLISH_SECONDS

CONTENT_TYPE = "application/json"
DEFAULT_USER = "guest"
"""Whom the client library names where an address names nobody."""
LONGEST_CLOSE_S = 5.0


def user_of(amqp_url: str) -> str | None:
    """Return whom the broker will take us for; None where it is not the address that says so."""
    parts = urlsplit(amqp_url)
    # A certificate, say, names another user than the address, and the broker refuses a wrong name.
    if parse_qs(parts.query).get("auth", ["plain"])[0].lower() != "plain":
        return None
    return unquote(parts.username) if parts.username else DEFAULT_USER


def envelope(message: Message, app_id: str, user: str | None = None) -> aio_pika.Message:
    """Wrap a message: persistent JSON with CloudEvents-shaped headers and W3C trace context.

    The broker's user goes with a message that is to be proven.
    """
    headers: dict[str, str] = {
        **message.placing(),
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
        user_id=user if message.names_sender else None,
        headers=dict(headers),
    )


@dataclass
class _Link:
    """One connection and its channel; given up as a whole, and only by who used it."""

    connection: AbstractConnection
    channel: AbstractChannel
    exchanges: dict[str, AbstractExchange] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """True while both are open, as far as is known."""
        connection = self.connection
        connected = connection.connected.is_set() and not connection.is_closed
        return connected and not self.channel.is_closed

    async def exchange(self, name: str) -> AbstractExchange:
        """Return an exchange of the channel, without asking the broker for it."""
        if name not in self.exchanges:
            self.exchanges[name] = await self.channel.get_exchange(name, ensure=False)
        return self.exchanges[name]


class Publisher:
    """Publishes on a connection of its own, opened anew whenever it or its channel was closed.

    A channel that the broker closed (a forbidden key, say) would refuse every later publish, and a
    lost connection does not come back by itself, so neither is kept.
    """

    def __init__(self, amqp_url: str, app_id: str, deadline_s: float = 5.0) -> None:
        self._amqp_url = amqp_url
        self._user = user_of(amqp_url)
        self._app_id = app_id
        self._deadline_s = deadline_s
        self.may_declare = True
        """False once the broker has refused to let this user declare the topology."""
        self.hidden: set[str] = set()
        """Exchanges and queues that the broker has refused to show to this user."""
        self._link: _Link | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

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
        body = envelope(message, self._app_id, self._user)
        await self.publish_raw(body, message.exchange, message.key(), mandatory=message.mandatory)

    async def publish_raw(
        self, body: aio_pika.Message, exchange: str, key: str, *, mandatory: bool
    ) -> None:
        """Send a ready envelope; raises as `publish` does."""
        begun_s = time.perf_counter()
        try:
            await self._send(body, exchange, key, mandatory=mandatory)
        except GatemeshError as error:
            PUBLISH_FAILURES.labels(exchange, type(error).__name__).inc()
            raise
        PUBLISH_SECONDS.labels(exchange).observe(time.perf_counter() - begun_s)

    async def _send(
        self, body: aio_pika.Message, exchange: str, key: str, *, mandatory: bool
    ) -> None:
        link: _Link | None = None
        try:
            async with whole_connection(), asyncio.timeout(self._deadline_s):
                link = await self._open_link()
                target = await link.exchange(exchange)
                await target.publish(body, key, mandatory=mandatory)
        except PublishError as error:
            raise UnroutableError(exchange, key) from error
        except DeliveryError as error:
            raise BrokerUnavailableError("the broker answered nack, a queue is full") from error
        except ChannelNotFoundEntity as error:
            self._give_up(link)
            raise BrokerRefusedError(f"exchange {exchange!r} does not exist") from error
        except ChannelAccessRefused as error:
            self._give_up(link)
            raise BrokerRefusedError(
                f"this user may not publish to {exchange!r} with the key {key!r}; "
                "import the broker's definitions of this release"
            ) from error
        except ChannelPreconditionFailed as error:
            self._give_up(link)
            raise BrokerRefusedError(f"the broker does not take it: {error}") from error
        except TimeoutError as error:
            self._give_up(link)
            raise BrokerUnavailableError(f"no confirmation in {self._deadline_s} s") from error
        except (AMQPError, OSError, RuntimeError) as error:
            self._give_up(link)
            raise BrokerUnavailableError(f"broker connection failed: {type(error).__name__}") from (
                error
            )

    async def channel(self) -> AbstractChannel:
        """Return an open channel with confirms; opens connection and channel where needed."""
        return (await self._open_link()).channel

    @asynccontextmanager
    async def fresh_channel(self) -> AsyncIterator[AbstractChannel]:
        """Give a channel on a connection of its own, for what may be refused.

        A refusal closes the channel, and what is under way on the one for publishing with it.

        Raises:
            AMQPError, OSError, TimeoutError: the broker is away, or does not answer.
        """
        connection = await aio_pika.connect(self._amqp_url, timeout=self._deadline_s)
        try:
            yield await connection.channel()
        finally:
            await _close(connection)

    async def close(self) -> None:
        """Close the connection; later publishes open a new one."""
        self._give_up(self._link)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _open_link(self) -> _Link:
        async with self._opening:
            if self._link is None or not self._link.is_up:
                self._give_up(self._link)
                self._link = await self._connect()
            return self._link

    async def _connect(self) -> _Link:
        async with AsyncExitStack() as stack:
            connection = await aio_pika.connect(self._amqp_url)
            stack.push_async_callback(_close, connection)
            channel = await connection.channel(on_return_raises=True)
            stack.pop_all()
        return _Link(connection, channel)

    def _give_up(self, link: _Link | None) -> None:
        """Close a link in the background; another one that was opened meanwhile stays."""
        if link is None or link is not self._link:
            return
        self._link = None
        task = asyncio.create_task(_close(link.connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


@asynccontextmanager
async def whole_connection() -> AsyncIterator[None]:
    """Tell a task that is cancelled from one whose connection somebody else has closed.

    The client cancels whatever waits for an answer on a connection that is closed; nobody who
    waits asked for that, and it must not end him. The other way round, it takes a cancellation
    while it connects for a fault of the connection, and whoever tries again would never end.

    Raises:
        ConnectionAbortedError: the connection was closed meanwhile.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        if is_told_to_end():
            raise
        raise ConnectionAbortedError("closed while waiting for an answer") from error
    except (AMQPError, OSError, RuntimeError, TimeoutError) as error:
        if is_told_to_end():
            raise asyncio.CancelledError from error
        raise


def is_told_to_end() -> bool:
    """Return True in a task that somebody has cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _close(connection: AbstractConnection) -> None:
    with suppress(AMQPError, OSError, RuntimeError, TimeoutError):
        async with asyncio.timeout(LONGEST_CLOSE_S):
            await connection.close()
