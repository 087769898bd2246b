"""Messages that nobody can handle, or that come otherwise than they should."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from tests.faults.acting import accuse, is_repaired
from tests.faults.broker_events import control_broker
from tests.faults.scenario import Play

from gatemesh_common.broker import DEAD_LETTERS
from gatemesh_common.clock import utc_now
from gatemesh_common.messages import ALERTS, CONTROL, EVENTS
from gatemesh_common.publisher import Publisher

HUGE_BYTES = 10_000_000
POISON: tuple[tuple[str, str, bytes], ...] = (
    (ALERTS, "verdict.v1.l1.default.engine-0", b"{no json"),
    (ALERTS, "verdict.v1.l1.default.engine-0", b"\xff\xfe\x00"),
    (ALERTS, "verdict.v9.l1", json.dumps({"schema": 9, "what": "unknown"}).encode()),
    (ALERTS, "by.hand", b"[" * 100_000),
    (ALERTS, "by.hand", b"x" * HUGE_BYTES),
    (EVENTS, "report.v1.default.engine-0", b"null"),
    (EVENTS, "observed.v1.default.engine-0", b'{"running": "perhaps"}'),
)
"""Exchange, key and body."""
COPIES = 2
COPY_MARK = "x-test-copy"
LONGEST_DELAY_S = 1.0
LIMIT = "dead-letters-are-full"
SCHEMAS = 20


async def send_poison(it: Play) -> None:
    """Send what no reader can take."""
    async with Publisher(it.site.plan.addresses.amqp_url, "poisoner", deadline_s=20) as publisher:
        for exchange, key, body in POISON:
            message = aio_pika.Message(body, content_type="application/json")
            await publisher.publish_raw(message, exchange, key, mandatory=True)
    await it.is_cured()


async def repeat_everything(it: Play) -> None:
    """Each message comes three times, the copies late and out of order, while one is repaired."""
    async with repeating(it):
        await it.flows()
        await accuse(it)
        await is_repaired(it)
        await it.flows()


@asynccontextmanager
async def repeating(it: Play) -> AsyncIterator[None]:
    """Publish two copies of each message, each after a random while."""
    rng = random.Random(3)
    late: set[asyncio.Task[None]] = set()
    async with Publisher(it.site.fleet.plan.addresses.amqp_url, "repeater") as publisher:

        async def repeat(message: AbstractIncomingMessage) -> None:
            if COPY_MARK in message.headers:
                return
            for _ in range(COPIES):
                task = asyncio.create_task(
                    copy_later(publisher, message, rng.uniform(0, LONGEST_DELAY_S))
                )
                late.add(task)
                task.add_done_callback(late.discard)

        channel = await publisher.channel()
        queue = await channel.declare_queue(exclusive=True)
        for exchange in (ALERTS, EVENTS, CONTROL):
            await queue.bind(exchange, "#")
        tag = await queue.consume(repeat, no_ack=True)
        try:
            yield
        finally:
            await queue.cancel(tag)
            await asyncio.gather(*late)


async def copy_later(
    publisher: Publisher, message: AbstractIncomingMessage, delay_s: float
) -> None:
    """Publish a copy of a message after a while."""
    await asyncio.sleep(delay_s)
    copy = aio_pika.Message(
        message.body,
        content_type=message.content_type,
        delivery_mode=message.delivery_mode,
        message_id=message.message_id,
        type=message.type,
        app_id=message.app_id,
        headers={**message.headers, COPY_MARK: "1"},
    )
    await publisher.publish_raw(
        copy, str(message.exchange), str(message.routing_key), mandatory=False
    )


async def fill_dead_letters(it: Play) -> None:
    """The dead letters take no more: reading goes on all the same."""
    limit = json.dumps({"max-length": 1, "overflow": "reject-publish"})
    pattern = f"^{DEAD_LETTERS}$"
    await asyncio.to_thread(control_broker, it, "set_policy", LIMIT, pattern, limit)
    try:
        await send_poison(it)
    finally:
        await asyncio.to_thread(control_broker, it, "clear_policy", LIMIT)


async def mix_schemas(it: Play) -> None:
    """Publishers of several releases speak at once."""
    word = f"{it.ledger.word}-schema"
    async with Publisher(it.site.plan.addresses.amqp_url, "releases") as publisher:
        for number in range(SCHEMAS):
            for body in releases(word, number):
                message = aio_pika.Message(json.dumps(body).encode())
                await publisher.publish_raw(message, ALERTS, "verdict.v1.l2", mandatory=True)
    query = "SELECT count(*) FROM verdicts_v1 WHERE type = %(word)s"
    wanted = SCHEMAS * len(releases(word, 0))
    await it.reach(lambda: it.count(query, word=word) == wanted, "every release is understood")


def releases(word: str, number: int) -> list[dict[str, object]]:
    """Return one event as an old, a present and a future release would write it."""
    old: dict[str, object] = {
        "instance_id": "engine-0",
        "request_id": f"{word}-old-{number}",
        "timestamp": utc_now().isoformat(),
        "check_level": "L2",
        "details": "by hand",
        "type": word,
        "outcome": "skipped",
        "reason": "no_logprobs",
    }
    present = old | {
        "request_id": f"{word}-present-{number}",
        "message_id": f"{word}-present-{number}",
        "details": {},
    }
    future = present | {
        "request_id": f"{word}-future-{number}",
        "message_id": f"{word}-future-{number}",
        "moon": {"phase": 3},
        "span": {"char_start": 1, "line": 7},
    }
    return [old, present, future]
