"""The spool is emptied in batches; what is refused is kept."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from prometheus_client import REGISTRY

from gatemesh_agent.sending import REFUSED_DELAY_S, Sender
from gatemesh_agent.spool import Spool
from gatemesh_common.errors import BrokerUnavailableError, GatemeshError, UnroutableError
from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_common.publisher import Publisher

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class FakePublisher(Publisher):
    """Takes every message, or fails as it is told."""

    def __init__(self) -> None:
        super().__init__("amqp://none", "test")
        self.sent: list[str | None] = []
        self.errors: dict[str, GatemeshError] = {}
        self.away = False
        self.arrived = asyncio.Event()

    async def channel(self) -> Any:
        """Fail while the broker is away."""
        if self.away:
            raise ConnectionRefusedError

    async def publish_raw(self, body: Any, exchange: str, key: str, *, mandatory: bool) -> None:
        """Keep the id."""
        if body.message_id in self.errors:
            raise self.errors[body.message_id]
        self.sent.append(body.message_id)
        self.arrived.set()


def verdict(name: str) -> Verdict:
    """Return a failure with this id."""
    return Verdict(
        message_id=name, timestamp=NOON, instance_id="e", request_id="r", check_level=CheckLevel.L1
    )


class Bench:
    """A sender over a real spool and a fake broker."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.publisher = FakePublisher()
        self.spool = Spool(folder / "spool.sqlite3", "agent", 1000)
        self.sender = Sender(self.spool, self.publisher, lambda: self.now)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a fresh bench."""
    return Bench(tmp_path)


async def test_a_batch_is_sent_and_forgotten(bench: Bench) -> None:
    """At most a hundred at once."""
    for number in range(130):
        bench.sender.put(verdict(f"v{number}"))
    assert await bench.sender.send_once() == 100
    assert await bench.sender.send_once() == 30
    assert await bench.sender.send_once() == 0
    assert bench.spool.depth == 0


async def test_a_refused_message_waits_and_does_not_hold_up_the_rest(bench: Bench) -> None:
    """It is tried again after a while."""
    bench.publisher.errors["bad"] = UnroutableError("x", "k")
    for name in ("bad", "good"):
        bench.sender.put(verdict(name))
    assert await bench.sender.send_once() == 1
    assert await bench.sender.send_once() == 0
    bench.publisher.errors.clear()
    bench.now = REFUSED_DELAY_S
    assert await bench.sender.send_once() == 1
    assert bench.publisher.sent == ["good", "bad"]


async def test_an_unconfirmed_message_is_sent_again(bench: Bench) -> None:
    """Soon: the broker is only slow or away."""
    bench.publisher.errors["v"] = BrokerUnavailableError("no confirmation")
    bench.sender.put(verdict("v"))
    assert await bench.sender.send_once() == 0
    bench.publisher.errors.clear()
    assert await bench.sender.send_once() == 1


async def test_a_broker_that_is_away_is_not_tried_for_each_message(bench: Bench) -> None:
    """Everything stays."""
    bench.publisher.away = True
    bench.sender.put(verdict("v"))
    assert await bench.sender.send_once() == 0
    assert (bench.publisher.sent, bench.spool.depth) == ([], 1)


async def test_running_sends_what_is_put(bench: Bench) -> None:
    """At once, without waiting for the next look."""
    task = asyncio.create_task(bench.sender.run())
    await asyncio.sleep(0)
    bench.sender.put(verdict("v"))
    await asyncio.wait_for(bench.publisher.arrived.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert bench.publisher.sent == ["v"]


async def test_a_drain_empties_the_spool(bench: Bench) -> None:
    """As far as the broker takes it."""
    for number in range(250):
        bench.sender.put(verdict(f"v{number}"))
    await bench.sender.drain(5.0)
    assert bench.spool.depth == 0


async def test_what_the_disk_refuses_is_sent_all_the_same(bench: Bench) -> None:
    """A full disk must not hide a failing engine; the order is kept."""
    with patch.object(bench.spool, "put", return_value=False):
        bench.sender.put(verdict("first"))
        bench.sender.put(verdict("second"))
    bench.publisher.errors["first"] = BrokerUnavailableError("away")
    await bench.sender.send_once()
    assert bench.publisher.sent == []
    del bench.publisher.errors["first"]
    await bench.sender.send_once()
    await bench.sender.send_once()
    assert bench.publisher.sent == ["first", "second"]


async def test_the_age_of_what_waits_is_shown(bench: Bench) -> None:
    """Depth alone does not say that the broker is away."""
    bench.now = NOON.timestamp() + 30
    bench.publisher.away = True
    bench.sender.put(verdict("v"))
    await bench.sender.send_once()
    assert REGISTRY.get_sample_value("gatemesh_agent_spool_age_seconds") == 30
    bench.publisher.away = False
    await bench.sender.send_once()
    await bench.sender.send_once()
    assert REGISTRY.get_sample_value("gatemesh_agent_spool_age_seconds") == 0


@pytest.mark.parametrize("turns", range(5))
async def test_it_ends_when_told_so_whatever_comes_just_then(tmp_path: Path, turns: int) -> None:
    """A message that comes within a few turns of the loop before once kept it running for ever."""
    bench = Bench(tmp_path)
    task = asyncio.create_task(bench.sender.run())
    while not bench.sender._woken._waiters:  # noqa: ASYNC110 (it waits for news then)
        await asyncio.sleep(0)
    bench.sender.put(verdict("late"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    _, running = await asyncio.wait({task}, timeout=5)
    assert not running
