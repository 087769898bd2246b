"""A balancer and a rotation in memory that keep their protocols' promises, for tests."""

from collections.abc import Mapping
from dataclasses import replace

from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    Server,
    Standing,
    assert_each,
    weight_of,
)
from gatemesh_executor.instances import Instance

FULL_WEIGHT = 100
FRESH = Standing(out=False, weight=FULL_WEIGHT, full_weight=FULL_WEIGHT, sessions=0)


class FakeBalancer:
    """Treats every server as told, and forgets it when it is told to."""

    def __init__(self) -> None:
        self.down = False
        self.unknown: set[Server] = set()
        self.standings: dict[Server, Standing] = {}

    async def take_out(self, server: Server) -> None:
        """Record the server as out."""
        found = await self.look(server)
        self.standings[server] = found if found.out else replace(found, out=True)

    async def put_back(self, server: Server, share: float) -> None:
        """Record the server as in, unless a person has taken it out."""
        found = await self.look(server)
        if not found.by_hand:
            self.standings[server] = replace(found, out=False)
            await self.set_weight(server, share)

    async def set_weight(self, server: Server, share: float) -> None:
        """Record the weight."""
        found = await self.look(server)
        self.standings[server] = replace(found, weight=weight_of(share, FULL_WEIGHT))

    async def look(self, server: Server) -> Standing:
        """Return the record."""
        if self.down:
            raise BalancerUnavailableError("the fake balancer is down")
        if server in self.unknown:
            raise BalancerRefusedError(f"the fake balancer does not know {server}")
        return self.standings.get(server, FRESH)

    async def assert_again(self, shares: Mapping[Server, float]) -> tuple[Server, ...]:
        """Record what differs."""
        return await assert_each(self, shares)

    def forget(self) -> None:
        """Be started anew."""
        self.standings.clear()


class FakeRotation:
    """Remembers what is out; confirms whatever version it was told is applied."""

    def __init__(self, applied_version: int = 0) -> None:
        self.applied_version = applied_version
        self.out: set[str] = set()
        self.counts: list[int] = []
        """Requests under way at the next looks; then nobody counts them."""
        self.notes: tuple[str, ...] = ()

    async def take_out(self, instance: Instance, routing_version: int) -> None:
        """Record the instance as out."""
        self.out.add(instance.instance_id)

    async def put_back(self, instance: Instance) -> tuple[str, ...]:
        """Record the instance as in."""
        self.out.discard(instance.instance_id)
        return self.notes

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Answer at once."""
        return instance.instance_id in self.out and self.applied_version >= routing_version

    async def sessions(self, instance: Instance) -> int | None:
        """Return the next count."""
        return self.counts.pop(0) if self.counts else None
