"""What is stored with the state is sent, once confirmed it is gone, and nothing is lost between."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from aio_pika.abc import AbstractChannel
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.broker import UNSHARDED, VERDICTS
from gatemesh_common.database import open_database, transaction
from gatemesh_common.inbox import METADATA, first_seen, forget_before
from gatemesh_common.messages import Message, Verdict
from gatemesh_common.outbox import HAND_OVER, OUTBOX, REFUSED_DELAY, OutboxRow, Relay, enqueue
from gatemesh_common.publisher import Publisher

from ..gate import Gate  # noqa: TID252 (shared by the integration tests)
from .conftest import depth, take, until

pytestmark = pytest.mark.integration
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
async def engine(fresh_database: str) -> AsyncIterator[AsyncEngine]:
    """Give a database with an inbox and an outbox."""
    engine = open_database(fresh_database)
    async with engine.begin() as connection:
        await connection.run_sync(METADATA.create_all)
    yield engine
    await engine.dispose()


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """Return the moment it is set to."""
        return self.now


def verdict(number: int) -> Verdict:
    """Return one of many verdicts."""
    return Verdict(
        message_id=f"m{number}",
        timestamp=NOW,
        instance_id="e",
        request_id=f"r{number}",
        check_level="L1",
    )


async def store(engine: AsyncEngine, *messages: Message, after_s: float = 0) -> None:
    """Leave messages in the outbox."""
    due = [(message, NOW + timedelta(seconds=after_s)) for message in messages]
    async with transaction(engine) as connection:
        await enqueue(connection, due, "test", NOW)


async def left(engine: AsyncEngine) -> int:
    """Return how many messages wait."""
    async with transaction(engine) as connection:
        return (await connection.execute(select(func.count()).select_from(OUTBOX))).scalar_one()


async def test_a_stored_message_is_sent_and_gone(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """It arrives as if it had been published at once."""
    await store(engine, verdict(1))
    assert await Relay(engine, publisher, "test", Hands()).relay_once() == 1
    got = await take(channel, VERDICTS.name)
    assert Verdict.model_validate_json(got.body) == verdict(1)
    assert (got.message_id, got.type) == ("m1", "Verdict")
    assert await left(engine) == 0


async def test_the_same_id_is_stored_once(engine: AsyncEngine) -> None:
    """A repeated transaction repeats its messages."""
    await store(engine, verdict(1), verdict(2))
    await store(engine, verdict(1))
    assert await left(engine) == 2


async def test_a_transaction_that_fails_sends_nothing(engine: AsyncEngine) -> None:
    """State and message are one."""

    async def fail() -> None:
        async with transaction(engine) as connection:
            await enqueue(connection, [(verdict(1), NOW)], "test", NOW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await left(engine) == 0


async def test_a_delayed_message_waits(engine: AsyncEngine, publisher: Publisher) -> None:
    """Back-off lives in the outbox."""
    clock = Hands()
    relay = Relay(engine, publisher, "test", clock)
    await store(engine, verdict(1), after_s=5)
    clock.now = NOW + timedelta(seconds=4.9)
    assert await relay.relay_once() == 0
    clock.now = NOW + timedelta(seconds=5)
    assert await relay.relay_once() == 1


async def test_an_unroutable_message_waits_and_blocks_nobody(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """The reader's queue appears later; others go on meanwhile."""
    clock = Hands()
    relay = Relay(engine, publisher, "test", clock)
    queue = await channel.declare_queue(VERDICTS.name, passive=True)
    await queue.unbind(UNSHARDED)
    await store(engine, verdict(1))
    assert await relay.relay_once() == 0
    assert await relay.relay_once() == 0
    await queue.bind(UNSHARDED)
    clock.now = NOW + REFUSED_DELAY
    assert await relay.relay_once() == 1
    assert await depth(channel, VERDICTS.name) == 1


async def test_two_relays_never_send_the_same_message(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """Managers scale out."""
    await store(engine, *[verdict(n) for n in range(150)])
    relays = [Relay(engine, publisher, "test", Hands(), batch=20) for _ in range(2)]
    sent = 0
    while (now_sent := sum(await asyncio.gather(*(r.relay_once() for r in relays)))) > 0:
        sent += now_sent
    assert sent == 150
    assert await depth(channel, VERDICTS.name) == 150


async def kept(engine: AsyncEngine, *messages: Message) -> list[OutboxRow]:
    """Leave messages in the outbox for whoever stores them; return what he may send."""
    async with transaction(engine) as connection:
        due = [(message, NOW) for message in messages]
        return await enqueue(connection, due, "test", NOW, kept_for=HAND_OVER)


async def test_what_is_handed_over_is_sent_at_once_and_once(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """Before any look at the table; then its row goes, and no relay sends it again."""
    clock = Hands()
    relay, other = (Relay(engine, publisher, "test", clock) for _ in range(2))
    rows = await kept(engine, verdict(1), verdict(2))
    assert await other.relay_once() == 0
    relay.hand_over(rows)
    relay.hand_over(rows)
    await until(lambda: has_arrived(channel, 2))
    assert await left(engine) == 2
    clock.now = NOW + HAND_OVER
    assert await relay.relay_once() == 0
    assert await left(engine) == 0
    assert await other.relay_once() == 0
    assert await depth(channel, VERDICTS.name) == 2


async def test_what_is_under_way_holds_up_no_row_behind_it(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """However slow its confirmation, and however small a batch is."""
    await store(engine, verdict(1), verdict(2))
    relay = Relay(engine, publisher, "test", Hands(), batch=1)
    slow = asyncio.create_task(asyncio.sleep(60))
    relay._under_way["m1"] = slow
    assert await relay.relay_once() == 1
    assert (await take(channel, VERDICTS.name)).message_id == "m2"
    assert await left(engine) == 1
    slow.cancel()


async def has_arrived(channel: AbstractChannel, count: int) -> bool:
    """Tell whether so many messages lie in the queue."""
    return await depth(channel, VERDICTS.name) == count


async def test_what_a_dead_process_kept_is_sent_by_another(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """It dies between its commit and handing over: the row is there, and others come by."""
    clock = Hands()
    await kept(engine, verdict(1))
    other = Relay(engine, publisher, "test", clock)
    assert await other.relay_once() == 0
    clock.now = NOW + HAND_OVER
    assert await other.relay_once() == 1
    assert await depth(channel, VERDICTS.name) == 1


async def test_what_waits_for_its_moment_is_not_handed_over(engine: AsyncEngine) -> None:
    """A delayed message is the relays', from that moment on."""
    later = NOW + timedelta(seconds=5)
    async with transaction(engine) as connection:
        messages = [(verdict(1), later), (verdict(2), NOW)]
        rows = await enqueue(connection, messages, "test", NOW, kept_for=HAND_OVER)
        found = select(OUTBOX.c.message_id, OUTBOX.c.available_at).order_by(OUTBOX.c.id)
        stored = (await connection.execute(found)).all()
    assert [row["message_id"] for row in rows] == ["m2"]
    assert [tuple(one) for one in stored] == [("m1", later), ("m2", NOW + HAND_OVER)]


async def test_what_was_refused_when_handed_over_is_sent_later(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """Its row stays."""
    clock = Hands()
    relay = Relay(engine, publisher, "test", clock)
    queue = await channel.declare_queue(VERDICTS.name, passive=True)
    await queue.unbind(UNSHARDED)
    relay.hand_over(await kept(engine, verdict(1)))
    await asyncio.gather(*relay._under_way.values())
    assert await relay.relay_once() == 0
    await queue.bind(UNSHARDED)
    clock.now = NOW + HAND_OVER
    assert await relay.relay_once() == 1
    assert await depth(channel, VERDICTS.name) == 1


async def test_a_relay_that_ends_leaves_no_row_of_what_it_sent(
    engine: AsyncEngine, publisher: Publisher, channel: AbstractChannel
) -> None:
    """Else the next one would send it again; what comes later is left to that one."""
    relay = Relay(engine, publisher, "test", Hands())
    running = asyncio.create_task(relay.run(idle_s=60))
    await asyncio.sleep(0)
    relay.hand_over(await kept(engine, verdict(1)))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await left(engine) == 0
    relay.hand_over(await kept(engine, verdict(2)))
    assert await left(engine) == 1
    assert await depth(channel, VERDICTS.name) == 1


async def test_a_broker_that_was_away_gets_everything(
    engine: AsyncEngine, vhost_url: str, publisher: Publisher, channel: AbstractChannel
) -> None:
    """The relay goes on by itself."""
    assert publisher is not None
    clock = Hands()
    async with Gate(vhost_url) as gate, Publisher(gate.url, "test", deadline_s=1) as through:
        relay = Relay(engine, through, "test", clock)
        running = asyncio.create_task(relay.run(idle_s=0.05))
        await gate.shut()
        await store(engine, *[verdict(n) for n in range(3)])
        await until(lambda: is_delayed(engine))
        await gate.open()
        clock.now = NOW + REFUSED_DELAY
        await until(lambda: is_empty(engine))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert await depth(channel, VERDICTS.name) == 3


async def is_delayed(engine: AsyncEngine) -> bool:
    """Tell whether the relay has tried and put the messages off."""
    query = select(func.count()).where(OUTBOX.c.available_at > NOW)
    async with transaction(engine) as connection:
        return (await connection.execute(query)).scalar_one() == 3


async def is_empty(engine: AsyncEngine) -> bool:
    """Tell whether everything is sent."""
    return await left(engine) == 0


async def test_a_database_that_was_away_stops_no_relay(
    fresh_database: str, engine: AsyncEngine, publisher: Publisher
) -> None:
    """It retries, it does not end."""
    async with Gate(fresh_database) as gate:
        through = open_database(gate.url, deadline_s=2)
        relay = Relay(through, publisher, "test", Hands())
        running = asyncio.create_task(relay.run(idle_s=0.05))
        await store(engine, verdict(1))
        await until(lambda: is_empty(engine))
        await gate.shut()
        await store(engine, verdict(2))
        await gate.open()
        await until(lambda: is_empty(engine))
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await through.dispose()


async def test_an_id_is_seen_once_per_queue(engine: AsyncEngine) -> None:
    """Two queues are two readers."""
    async with transaction(engine) as connection:
        assert await first_seen(connection, "q", ["a", "b", "a"], NOW) == {"a", "b"}
        assert await first_seen(connection, "q", ["b", "c"], NOW) == {"c"}
        assert await first_seen(connection, "other", ["a"], NOW) == {"a"}
        assert await first_seen(connection, "q", [], NOW) == set()


async def test_an_id_being_handled_elsewhere_is_waited_for(engine: AsyncEngine) -> None:
    """If the other one fails, the message is ours after all."""
    holding, let_go = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        async with transaction(engine) as connection:
            await first_seen(connection, "q", ["a"], NOW)
            holding.set()
            await let_go.wait()
            raise RuntimeError

    async def take_over() -> set[str]:
        await holding.wait()
        async with transaction(engine) as connection:
            return await first_seen(connection, "q", ["a"], NOW)

    failing, taking = asyncio.create_task(fail()), asyncio.create_task(take_over())
    await holding.wait()
    let_go.set()
    assert await taking == {"a"}
    with pytest.raises(RuntimeError):
        await failing


async def test_old_ids_are_forgotten(engine: AsyncEngine) -> None:
    """The inbox does not grow for ever."""
    async with transaction(engine) as connection:
        await first_seen(connection, "q", ["old"], NOW)
        await first_seen(connection, "q", ["new"], NOW + timedelta(hours=1))
        assert await forget_before(connection, NOW + timedelta(minutes=1)) == 1
        assert await first_seen(connection, "q", ["old", "new"], NOW) == {"old"}
