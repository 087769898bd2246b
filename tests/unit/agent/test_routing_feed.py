"""The routing feed, as far as no broker is needed."""

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from gatemesh_agent.routing import PoolView, Router
from gatemesh_agent.routing_feed import RoutingFeed
from gatemesh_agent.routing_store import load_table
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import Message, RoutingApplied, RoutingTable
from gatemesh_common.publisher import Publisher

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class FakePublisher(Publisher):
    """Keeps what is published."""

    def __init__(self) -> None:
        super().__init__("amqp://none", "test")
        self.sent: list[Message] = []
        self.away = False

    async def publish(self, message: Message) -> None:
        """Keep it, or fail."""
        if self.away:
            raise BrokerUnavailableError("away")
        self.sent.append(message)


class Bench:
    """A feed with everything around it."""

    def __init__(self, store: Path) -> None:
        self.publisher = FakePublisher()
        self.router = Router(Random(1))
        self.shown: list[PoolView] = []
        self.store = store
        self.feed = RoutingFeed(
            agent_id="agent-0",
            pool="p",
            router=self.router,
            publisher=self.publisher,
            clock=lambda: NOON,
            store=store,
            on_view=self.shown.append,
        )

    async def tell(self, version: int, pool: str = "p", at: datetime = NOON) -> None:
        """Have a table arrive."""
        table = RoutingTable(timestamp=at, pool=pool, version=version, instances=())
        await self.feed.receive(table.model_dump_json().encode())

    def confirmed(self) -> list[int]:
        """Return the versions that were confirmed."""
        return [each.version for each in self.publisher.sent if isinstance(each, RoutingApplied)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a fresh bench."""
    return Bench(tmp_path / "routing.json")


async def test_every_table_is_confirmed_with_the_version_in_use(bench: Bench) -> None:
    """Repeated and old ones, too: the executor waits for it."""
    for version in (3, 3, 2, 4):
        await bench.tell(version)
    assert bench.confirmed() == [3, 3, 3, 4]


async def test_a_repeated_table_is_shown_again(bench: Bench) -> None:
    """What a follower could not finish, it takes up again."""
    await bench.tell(3)
    await bench.tell(3)
    assert [view.version for view in bench.shown] == [3, 3]


async def test_a_table_from_the_future_can_be_replaced(bench: Bench) -> None:
    """Its own time is that of its arrival."""
    await bench.tell(2**62, at=datetime(9999, 1, 1, tzinfo=UTC))
    assert bench.router.view.timestamp == NOON


async def test_a_new_table_is_on_disk_before_it_is_confirmed(bench: Bench) -> None:
    """A killed agent comes back with it."""
    await bench.tell(3)
    stored = load_table(bench.store, "p")
    assert stored is not None
    assert stored.version == 3


async def test_what_does_not_concern_it_changes_nothing(bench: Bench) -> None:
    """Another pool's table, or no table at all."""
    await bench.tell(3, pool="q")
    await bench.feed.receive(b"{}")
    assert (bench.confirmed(), bench.router.view.version) == ([], 0)


async def test_a_broker_that_is_away_does_not_stop_routing(bench: Bench) -> None:
    """The confirmation is made up for with the next table."""
    bench.publisher.away = True
    await bench.tell(3)
    assert bench.router.view.version == 3
