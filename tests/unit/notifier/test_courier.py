"""One target: tried until taken, given up in the end, told once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from pydantic import SecretStr
from tests.unit.notifier.parts import NOW, told

from gatemesh_notifier.courier import Courier
from gatemesh_notifier.facts import Fact
from gatemesh_notifier.grouping import Mailbox, Pace
from gatemesh_notifier.journal import Journal
from gatemesh_notifier.targets import Target
from gatemesh_notifier.wording import Text, load_wording

PACE = Pace(gather_s=0, quiet_gather_s=0, per_min=600, burst=100)


@dataclass
class Room:
    """Takes or refuses texts, as it is told."""

    answers: list[bool] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, text: Text) -> bool:
        """Keep the text; without an answer given, take it."""
        self.asked.set()
        self.texts.append(text)
        return self.answers.pop(0) if self.answers else True


class SlowRoom(Room):
    """Takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def send(self, text: Text) -> bool:
        """Wait until released."""
        self.asked.set()
        await self.released.wait()
        return await super().send(text)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A fresh journal."""
    return Journal(tmp_path)


Build = Callable[..., Courier]


@pytest.fixture
def build(journal: Journal, request: pytest.FixtureRequest) -> Build:
    """Return what makes a courier to a room; its name is the test's."""

    def make(room: Room, give_up_after_s: float = 60.0) -> Courier:
        name = request.node.originalname.replace("_", "-")[:50]
        return Courier(
            target=Target(name=name, url=SecretStr("json://h")),
            mailbox=Mailbox(PACE, journal.last_words(name)),
            wording=load_wording("en", None),
            journal=journal,
            send=room.send,
            give_up_after_s=give_up_after_s,
            clock=lambda: NOW,
            monotonic=asyncio.get_running_loop().time,
            first_retry_s=0.001,
        )

    return make


@asynccontextmanager
async def at_work(courier: Courier) -> AsyncIterator[Courier]:
    """Have a courier run for a while."""
    task = asyncio.create_task(courier.run())
    try:
        async with asyncio.timeout(10):
            yield courier
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def posted(courier: Courier, fact: Fact) -> asyncio.Future[bool]:
    """Post a fact that is news."""
    future = courier.post(fact)
    assert future is not None
    return future


def metric(name: str, courier: Courier) -> float | None:
    """Return a metric of the courier's target."""
    return REGISTRY.get_sample_value(f"gatemesh_notifier_{name}", {"target": courier.target.name})


async def test_refused_and_then_taken(build: Build, journal: Journal) -> None:
    """It is tried again, told once, and written down."""
    room = Room(answers=[False, False])
    async with at_work(build(room)) as courier:
        assert await posted(courier, told(message_id="m-1"))
    assert len(room.texts) == 3
    assert journal.has(courier.target.name, "m-1")
    assert (metric("failed_tries_total", courier), metric("target_up", courier)) == (2, 1)
    assert metric("waiting", courier) == 0


async def test_given_up(build: Build, journal: Journal) -> None:
    """Who waits learns of it; it is counted, not written down, and its subject is news again."""
    room = Room(answers=[False])
    async with at_work(build(room, give_up_after_s=0)) as courier:
        assert not await posted(courier, told(message_id="m-1"))
        assert not journal.has(courier.target.name, "m-1")
        assert await posted(courier, told(message_id="m-2"))
    assert metric("undelivered_total", courier) == 1


async def test_waiting_behind_others_counts(build: Build) -> None:
    """Events that came while another was tried are not held as long again."""
    room = Room(answers=[False])
    courier = build(room)
    fact = told(message_id="m-1")
    future = posted(courier, fact)
    courier.monotonic = lambda: asyncio.get_running_loop().time() + courier.give_up_after_s
    async with at_work(courier):
        assert not await future
    assert len(room.texts) == 1


async def test_the_same_message_while_it_waits(build: Build) -> None:
    """A redelivery joins the first, and nothing is told twice."""
    room = Room()
    courier = build(room)
    first, second = (posted(courier, told(message_id="m-1")) for _ in range(2))
    async with at_work(courier):
        assert await first
        assert await second
    assert len(room.texts) == 1


async def test_the_same_message_after_it_was_told(build: Build) -> None:
    """In this life and, by the journal, in the next."""
    room = Room()
    async with at_work(build(room)) as courier:
        await posted(courier, told(message_id="m-1"))
        assert courier.post(told(message_id="m-1")) is None
    again = build(room)
    assert again.post(told(message_id="m-1")) is None
    assert again.post(told(message_id="m-2")) is None, "the same word about the same incident"
    async with at_work(again):
        await posted(again, told(message_id="m-3", status="resolved"))
    assert [text.level for text in room.texts] == ["warning", "quiet"]


async def test_what_it_does_not_want(build: Build) -> None:
    """Other levels are other people's."""
    courier = build(Room())
    courier.target = courier.target.model_copy(update={"levels": frozenset({"page"})})
    assert courier.post(told()) is None


async def test_it_stops_between_tries_and_after_one_that_is_under_way(build: Build) -> None:
    """What may have been taken is waited for; what was not goes back to its queue."""
    room = Room(answers=[False])
    courier = build(room)
    courier.first_retry_s = 30
    future = posted(courier, told(message_id="m-1"))
    running = asyncio.create_task(courier.run())
    await room.asked.wait()
    courier.stop()
    await asyncio.wait_for(running, 10)
    assert not future.done()
    assert len(room.texts) == 1

    taking = build(slow := SlowRoom())
    future = posted(taking, told(message_id="m-2", status="held"))
    running = asyncio.create_task(taking.run())
    await slow.asked.wait()
    taking.stop()
    slow.released.set()
    await asyncio.wait_for(running, 10)
    assert await future
    assert taking.journal.has(taking.target.name, "m-2")


async def test_it_stops_while_nothing_is_due(build: Build) -> None:
    """At once."""
    courier = build(Room())
    running = asyncio.create_task(courier.run())
    await asyncio.sleep(0)
    courier.stop()
    await asyncio.wait_for(running, 10)
