"""Poison, redelivery and lost consumers, on a real broker."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel, AbstractQueue
from faststream import AckPolicy
from faststream.rabbit import RabbitBroker, RabbitRouter

from gatemesh_common.broker import DEAD_LETTERS, DELIVERY_LIMIT, VERDICTS, topic, work_queue
from gatemesh_common.consuming import consumer_broker, has_no_consumer, watch_consumers
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import ALERTS, DEAD, Verdict
from gatemesh_common.publisher import Publisher

from .conftest import depth, take, until

pytestmark = pytest.mark.integration

Handler = Callable[[Verdict], Awaitable[None]]
MINIMAL = {
    "instance_id": "engine-0",
    "request_id": "r1",
    "timestamp": "2026-05-01T12:00:00Z",
    "check_level": "L1",
    "details": "looks odd",
    "type": "garbage",
}


@asynccontextmanager
async def reading(
    vhost_url: str, publisher: Publisher, handler: Handler
) -> AsyncIterator[RabbitBroker]:
    """Run a subscriber of verdicts as services do."""
    router = RabbitRouter()

    @router.subscriber(
        work_queue(VERDICTS), topic(VERDICTS.exchange), ack_policy=AckPolicy.REJECT_ON_ERROR
    )
    async def on_verdict(verdict: Verdict) -> None:
        await handler(verdict)

    broker = consumer_broker(vhost_url, "test", publisher)
    broker.include_router(router)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def send(channel: AbstractChannel, body: bytes, kind: str | None = None) -> None:
    """Publish what anybody could publish."""
    exchange = await channel.get_exchange(ALERTS, ensure=False)
    message = aio_pika.Message(body, content_type=kind, message_id="wire-1")
    await exchange.publish(message, "anything.at.all")


async def is_so(true: bool) -> bool:  # noqa: FBT001 (a condition, to be awaited)
    """Return a condition of this process."""
    return true


class Seen:
    """Keeps the verdicts that arrive."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []

    async def __call__(self, verdict: Verdict) -> None:
        """Keep one."""
        self.verdicts.append(verdict)


JSON = "application/json"


@pytest.mark.parametrize(
    ("poison", "reason"),
    [
        pytest.param((b"{no json", JSON), "body: no valid JSON", id="bad-json"),
        pytest.param((b"\xff\xfe", JSON), "body: no valid JSON", id="bad-utf8"),
        pytest.param((b"{no json", None), "verdict: Input should be a valid dict", id="no-type"),
        pytest.param((b"[]", JSON), "verdict: Input should be", id="list"),
        pytest.param(
            (json.dumps({**MINIMAL, "check_level": "L9"}).encode(), JSON),
            "verdict.check_level: Input should be",
            id="wrong-field",
        ),
        pytest.param(
            (json.dumps({k: v for k, v in MINIMAL.items() if k != "request_id"}).encode(), JSON),
            "verdict.request_id: Field required",
            id="missing-field",
        ),
    ],
)
async def test_poison_is_kept_once_with_its_reason(
    vhost_url: str,
    publisher: Publisher,
    channel: AbstractChannel,
    poison: tuple[bytes, str | None],
    reason: str,
) -> None:
    """And does not block what comes after it."""
    seen = Seen()
    async with reading(vhost_url, publisher, seen):
        await send(channel, *poison)
        await send(channel, json.dumps(MINIMAL).encode(), "application/json")
        dead = await take(channel)
        await until(lambda: is_so(len(seen.verdicts) == 1))
    assert dead.body == poison[0]
    assert str(dead.headers["x-gatemesh-reason"]).startswith(reason)
    assert dead.headers["x-gatemesh-queue"] == VERDICTS.name
    assert dead.headers["x-gatemesh-key"] == "anything.at.all"
    assert dead.message_id == "wire-1"
    assert await depth(channel, DEAD_LETTERS) == 0
    assert await depth(channel, VERDICTS.name) == 0


async def test_what_a_handler_refuses_is_kept_with_its_reason(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """Our own errors say why."""

    class RefusedError(GatemeshError):
        """No."""

    async def refuse(_verdict: Verdict) -> None:
        raise RefusedError("not with me")

    async with reading(vhost_url, publisher, refuse):
        await send(channel, json.dumps(MINIMAL).encode(), "application/json")
        dead = await take(channel)
    assert dead.headers["x-gatemesh-reason"] == "not with me"
    assert await depth(channel, VERDICTS.name) == 0


async def test_a_minimal_alert_needs_no_content_type(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """A person with a shell can publish one."""
    seen = Seen()
    async with reading(vhost_url, publisher, seen):
        await send(channel, json.dumps(MINIMAL).encode())
        await until(lambda: is_so(len(seen.verdicts) == 1))
    assert seen.verdicts[0].details == {"text": "looks odd"}


async def test_without_our_copy_the_broker_keeps_the_message(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """A publisher that cannot reach the dead letters loses nothing."""
    assert publisher is not None
    async with (
        Publisher("amqp://nobody:wrong@127.0.0.1:1/", "test", deadline_s=0.5) as cut_off,
        reading(vhost_url, cut_off, Seen()),
    ):
        await send(channel, b"{no json", JSON)
        dead = await take(channel)
    assert dead.body == b"{no json"
    assert dead.headers["x-first-death-queue"] == VERDICTS.name


async def was_got(queue: AbstractQueue) -> bool:
    """Take a message without acknowledging it."""
    return await queue.get(fail=False) is not None


async def test_a_message_that_kills_its_reader_ends_in_the_dead_letters(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """Ten deliveries are enough; the broker counts them across readers."""
    await send(channel, json.dumps(MINIMAL).encode(), "application/json")
    for _ in range(DELIVERY_LIMIT + 1):
        connection = await aio_pika.connect(vhost_url)
        reader = await connection.channel()
        queue = await reader.declare_queue(VERDICTS.name, passive=True)
        await until(partial(was_got, queue))
        await connection.close()
    dead = await take(channel)
    assert dead.headers["x-first-death-reason"] == "delivery_limit"
    assert publisher is not None


async def test_a_closed_channel_loses_no_message(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """The channel is opened anew, and what was under way is delivered again."""
    seen, go_on = Seen(), asyncio.Event()

    async def wait(verdict: Verdict) -> None:
        await seen(verdict)
        await go_on.wait()

    async with reading(vhost_url, publisher, wait) as broker:
        await send(channel, json.dumps(MINIMAL).encode(), JSON)
        await until(lambda: is_so(len(seen.verdicts) == 1))
        inner = broker.subscribers[0]._queue_obj.channel  # type: ignore[attr-defined]
        underlay = await inner.get_underlay_channel()
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
            await underlay.queue_declare("no-such-queue", passive=True)
        await until(lambda: is_so(len(seen.verdicts) == 2))
        go_on.set()
        assert not await has_no_consumer(publisher, VERDICTS)
    assert seen.verdicts[0].message_id == seen.verdicts[1].message_id
    assert await depth(channel, VERDICTS.name) == 0
    assert await depth(channel, DEAD_LETTERS) == 0


async def test_a_deleted_queue_is_a_lost_consumer(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """The caller ends the process; the next one declares the queue anew."""
    async with reading(vhost_url, publisher, Seen()):
        watching = asyncio.create_task(watch_consumers(publisher, (VERDICTS,), every_s=0.1))
        await channel.queue_delete(VERDICTS.name)
        await asyncio.wait_for(watching, 30)


@pytest.mark.parametrize("lost", ["exchange", "binding", "dead letters"])
async def test_what_was_deleted_beside_the_queues_comes_back(
    vhost_url: str, publisher: Publisher, channel: AbstractChannel, lost: str
) -> None:
    """Without them messages would be refused for ever, or lost, while all consumers are there."""
    async with reading(vhost_url, publisher, seen := Seen()):
        watching = asyncio.create_task(watch_consumers(publisher, (VERDICTS,), every_s=0.1))
        if lost == "exchange":
            await channel.exchange_delete(ALERTS)
        elif lost == "binding":
            verdicts = await channel.declare_queue(VERDICTS.name, passive=True)
            await verdicts.unbind(ALERTS, VERDICTS.routing_key)
        else:
            await channel.queue_delete(DEAD_LETTERS)
        await until(partial(arrives, publisher, b"{no json"))
        await until(partial(arrives, publisher, json.dumps(MINIMAL).encode()))
        await until(lambda: is_so(len(seen.verdicts) >= 1))
        assert (await take(channel)).body == b"{no json"
        assert not watching.done()
        watching.cancel()


async def arrives(publisher: Publisher, body: bytes) -> bool:
    """Tell whether the topology takes a message, dead letters included."""
    message = aio_pika.Message(body, content_type=JSON)
    try:
        await publisher.publish_raw(message, DEAD, "anything", mandatory=True)
        await publisher.publish_raw(message, ALERTS, "anything", mandatory=True)
    except GatemeshError:
        return False
    return True


async def test_a_broker_that_is_away_is_no_lost_consumer() -> None:
    """Reconnecting is the client's business; nothing restarts for it."""
    async with Publisher("amqp://guest:guest@127.0.0.1:1/", "test") as cut_off:
        assert not await has_no_consumer(cut_off, VERDICTS)
