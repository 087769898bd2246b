"""Verdicts in shards: which manager reads which, and handing over without a gap."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any, Protocol

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from gatemesh_common.broker import MOST_SHARDS, SHARDING, queue_arguments, shard_of, shard_queue
from gatemesh_common.errors import GatemeshError
from gatemesh_common.message import BUCKET_HEADER, BUCKETS
from gatemesh_health_manager.intake import Intake, Reader

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0


class Leases(Protocol):
    """Who has which shard; a shard has one owner at a time."""

    async def place(self) -> tuple[int, int]:
        """Return the place of this manager among those that are there, and their number."""

    async def take(self, shard: int) -> bool:
        """Become the owner of a shard; False while another one is."""

    async def give_back(self, shard: int) -> None:
        """Leave a shard to others."""


def share_of(place: int, managers: int, shards: int) -> set[int]:
    """Return the shards of one of several managers; together they have each of them once."""
    return {shard for shard in range(shards) if shard % managers == place}


class Shards:
    """Reads this manager's share of the shards, and all of them when it is alone."""

    def __init__(
        self,
        leases: Leases,
        intake_of: Callable[[str], Intake],
        count: int,
        declare: Callable[[], Awaitable[object]],
    ) -> None:
        self._leases = leases
        self._intake_of = intake_of
        self._count = count
        self._declare = declare
        """Declares what has been deleted."""
        self._readers: dict[int, Reader] = {}

    async def run(self) -> None:
        """Read until cancelled."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            for shard in list(self._readers):
                await self._readers.pop(shard).end()

    async def _look(self) -> None:
        try:
            place, managers = await self._leases.place()
            await self._change_to(share_of(place, managers, self._count))
        except GatemeshError as error:
            # The leases went with the connection: another manager may have them by now.
            log.warning("leases_lost", extra={"error": str(error)})
            await asyncio.gather(*(reader.end() for reader in self._readers.values()))
            self._readers.clear()

    async def _change_to(self, wanted: set[int]) -> None:
        ended = {shard for shard, reader in self._readers.items() if reader.task.done()}
        for shard in ended | (self._readers.keys() - wanted):
            await self._readers.pop(shard).end()
            await self._leases.give_back(shard)
            log.info("shard_left", extra={"shard": shard})
        if ended:
            log.error("shard_queue_lost", extra={"shards": sorted(ended)})
            await self._declare()
        for shard in sorted(wanted - self._readers.keys()):
            if await self._leases.take(shard):
                intake = self._intake_of(shard_queue(shard).name)
                self._readers[shard] = Reader(intake)
                log.info("shard_taken", extra={"shard": shard})


async def declare_shards(amqp_url: str, count: int) -> int:
    """Declare the queues of shards and spread the buckets over them; return how many to read.

    With one shard there is no queue but the one of all verdicts. Queues of a time with more shards
    get nothing new, and are read until they are empty.
    """
    used = count if count > 1 else 0
    async with await aio_pika.connect(amqp_url) as connection:
        left = [n for n in range(used, MOST_SHARDS) if await has_queue(connection, n)]
        channel = await connection.channel()
        for shard in range(used):
            one = shard_queue(shard)
            await channel.declare_queue(one.name, durable=True, arguments=queue_arguments(one))
        # First each bucket's new way, then none but that: what comes meanwhile comes twice at most.
        for shard, bucket in product(range(used), range(BUCKETS)):
            if shard_of(bucket, used) == shard:
                await bind(channel, shard, bucket)
        for shard, bucket in product([*range(used), *left], range(BUCKETS)):
            if not used or shard_of(bucket, used) != shard:
                await unbind(channel, shard, bucket)
    return max([used - 1, *left]) + 1


async def bind(channel: AbstractChannel, shard: int, bucket: int) -> None:
    """Lead a bucket's verdicts to a shard."""
    queue = await channel.get_queue(shard_queue(shard).name, ensure=False)
    await queue.bind(SHARDING, "", arguments=matching(bucket))


async def unbind(channel: AbstractChannel, shard: int, bucket: int) -> None:
    """Lead a bucket's verdicts to a shard no more; harmless where they were not."""
    queue = await channel.get_queue(shard_queue(shard).name, ensure=False)
    await queue.unbind(SHARDING, "", arguments=matching(bucket))


def matching(bucket: int) -> dict[str, Any]:
    """Return what the broker compares with a message's headers."""
    return {"x-match": "all", BUCKET_HEADER: str(bucket)}


async def has_queue(connection: AbstractConnection, shard: int) -> bool:
    """Tell whether a shard's queue is there."""
    channel = await connection.channel()
    try:
        await channel.declare_queue(shard_queue(shard).name, passive=True)
    except ChannelNotFoundEntity:
        return False
    await channel.close()
    return True
