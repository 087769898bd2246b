"""Each shard has one reader, whoever comes and goes."""

import asyncio
from typing import cast

import pytest

from gatemesh_common.broker import MOST_SHARDS, queue_arguments, shard_of, shard_queue
from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_common.message import BUCKETS, bucket_of
from gatemesh_health_manager.intake import Intake
from gatemesh_health_manager.shards import Shards, matching, share_of


@pytest.mark.parametrize("managers", range(1, 7))
@pytest.mark.parametrize("shards", [1, 2, 4, 16])
def test_together_managers_read_each_shard_once(managers: int, shards: int) -> None:
    """And none reads many more than another."""
    shares = [share_of(place, managers, shards) for place in range(managers)]
    assert sorted(shard for share in shares for shard in share) == list(range(shards))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_an_instance_keeps_its_bucket_and_buckets_are_spread() -> None:
    """The numbers are on the wire: another release must come to the same ones."""
    assert (bucket_of("engine-0"), bucket_of("engine-1"), bucket_of("引擎")) == (40, 62, 61)
    used = {shard_of(bucket_of(f"engine-{n}"), 4) for n in range(64)}
    assert used == {0, 1, 2, 3}
    assert {bucket_of(f"engine-{n}") for n in range(2_000)} == set(range(BUCKETS))


def test_the_queue_of_a_shard_has_one_reader_at_a_time() -> None:
    """So that the verdicts of an instance keep their order."""
    queues = {shard_queue(shard) for shard in range(MOST_SHARDS)}
    assert len({queue.name for queue in queues}) == MOST_SHARDS
    assert all(queue_arguments(queue)["x-single-active-consumer"] for queue in queues)
    assert matching(7) == {"x-match": "all", "gatemesh-bucket": "7"}


class Table:
    """Stands for the leases of several managers, and says who reads what."""

    def __init__(self) -> None:
        self.owners: dict[int, int] = {}
        self.reading: list[str] = []
        self.managers = [0]
        self.declared = 0
        self.is_away = False
        self.changed = asyncio.Event()

    async def declare(self) -> None:
        """Count declarations."""
        self.declared += 1


class Lease:
    """The leases of one manager."""

    def __init__(self, table: Table, number: int) -> None:
        self._table = table
        self._number = number

    async def place(self) -> tuple[int, int]:
        """Tell the place; raises while the database is away."""
        if self._table.is_away:
            raise DatabaseUnavailableError("away")
        return self._table.managers.index(self._number), len(self._table.managers)

    async def take(self, shard: int) -> bool:
        """Take a shard that nobody has."""
        return self._table.owners.setdefault(shard, self._number) == self._number

    async def give_back(self, shard: int) -> None:
        """Leave a shard."""
        del self._table.owners[shard]


class Reading:
    """Stands for an intake."""

    def __init__(self, table: Table, queue: str) -> None:
        self._table = table
        self._queue = queue
        self._left = asyncio.Event()

    async def run(self, reading: object) -> None:
        """Read until told to leave; two readers of one queue are a fault."""
        assert self._queue not in self._table.reading
        self._table.reading.append(self._queue)
        await self._left.wait()
        self._table.reading.remove(self._queue)

    def leave(self) -> None:
        """End."""
        self._left.set()


def shards(table: Table, number: int) -> Shards:
    """Return the shards of one manager."""
    return Shards(
        Lease(table, number), lambda queue: cast(Intake, Reading(table, queue)), 4, table.declare
    )


async def settled(*sides: Shards) -> None:
    """Let each look twice."""
    for _ in range(2):
        for side in sides:
            await side._look()
            await asyncio.sleep(0)


async def test_a_newcomer_gets_its_share_and_the_other_takes_over() -> None:
    """A shard is left before another reads it."""
    table = Table()
    first, second = shards(table, 0), shards(table, 1)
    await settled(first)
    assert (len(table.reading), set(table.owners.values())) == (4, {0})
    table.managers = [0, 1]
    await settled(second, first, second)
    assert sorted(table.owners.items()) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert len(table.reading) == 4
    table.managers = [1]
    first_gone(table)
    await settled(second)
    assert set(table.owners.values()) == {1}


def first_gone(table: Table) -> None:
    """Have the first manager die: its leases end, and so does its reading."""
    for shard in (0, 2):
        del table.owners[shard]
        table.reading.remove(shard_queue(shard).name)


async def test_leases_that_are_lost_end_the_reading() -> None:
    """Another manager may have them by then; they are taken again afterwards."""
    table = Table()
    side = shards(table, 0)
    await settled(side)
    table.is_away = True
    await settled(side)
    assert table.reading == []
    table.is_away, table.owners = False, {}
    await settled(side)
    assert len(table.reading) == 4


async def test_a_queue_that_was_deleted_is_declared_again() -> None:
    """Its intake has ended by itself."""
    table = Table()
    side = shards(table, 0)
    await settled(side)
    side._readers[2]._intake.leave()
    await asyncio.wait_for(side._readers[2].task, 5)
    await settled(side)
    assert table.declared == 1
    assert len(table.reading) == 4
