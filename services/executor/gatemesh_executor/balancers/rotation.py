"""Rotation as a whole: the agents' routing, and the load balancers that the file lists."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatemesh_common.clock import Clock
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import RoutingTable
from gatemesh_common.running import first_to_end
from gatemesh_executor.balancers.agents import AgentRouting
from gatemesh_executor.balancers.base import Balancer, Server, StillOutError
from gatemesh_executor.balancers.config import BalancerSettings, HaproxySettings
from gatemesh_executor.balancers.haproxy import Haproxy
from gatemesh_executor.balancers.keeping import Keeper
from gatemesh_executor.balancers.nginx import Nginx
from gatemesh_executor.balancers.wishes import Wishes
from gatemesh_executor.instances import Fleet, Instance, Instances
from gatemesh_executor.pace import Pace

LOOK_S = 0.5
"""Time between two looks at a balancer: so long one that forgot may route wrongly."""
TABLE_DEADLINE_S = 3.0
"""Longest wait for the table that lets an instance back; it is repeated every two seconds."""
POLL_S = 0.05


def balancer_for(name: str, settings: BalancerSettings, pace: Pace) -> Balancer:
    """Return the balancer that the file describes."""
    if isinstance(settings, HaproxySettings):
        return Haproxy(name, settings)
    return Nginx(name, settings, pace)


def seats_of(instance: Instance) -> tuple[tuple[str, Server], ...]:
    """Return the names of the balancers that list an instance, with what they call it."""
    return tuple(
        (one.name, Server(one.backend or "", one.server or "")) for one in instance.balancers or ()
    )


@dataclass
class FleetRotation:
    """Agents confirm by their word, load balancers by what is read back from them.

    What the balancers should do is what the routing table says, as for the agents; a command only
    takes an instance out before the table is heard.
    """

    agents: AgentRouting
    instances: Instances
    pace: Pace
    clock: Clock
    keepers: dict[str, Keeper] = field(default_factory=dict)
    _wishes: Wishes = field(default_factory=Wishes)

    def add(self, name: str, balancer: Balancer) -> None:
        """Keep a balancer to the wishes from now on."""
        servers = frozenset(server for server, _ in self._listed_at(name))
        self.keepers[name] = Keeper(name, balancer, servers, lambda: self._shares(name))

    def hear(self, table: RoutingTable) -> None:
        """Note a routing table; the balancers follow at the next look."""
        # One from the future could never be replaced by a lower version.
        stamped = min(table.timestamp, self.clock())
        self._wishes = self._wishes.hearing(table.model_copy(update={"timestamp": stamped}))

    async def run(self) -> None:
        """Keep every balancer to its wishes until cancelled.

        Raises:
            SettingsError: one does not know its servers.
        """
        forever = asyncio.Event().wait()
        await first_to_end(forever, *(self._keep(keeper) for keeper in self.keepers.values()))

    async def take_out(self, instance: Instance, routing_version: int) -> None:
        """Take it out of every balancer; one at fault does not spare the others."""
        await self.agents.take_out(instance, routing_version)
        self._wishes = self._wishes.taking_out(
            instance.instance_id, instance.pool, routing_version, self.clock()
        )
        faults = [await self._take_out_of(*seat) for seat in seats_of(instance)]
        for fault in filter(None, faults):
            raise fault

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Wait for the agents up to the deadline; what a balancer does not confirm is raised."""
        confirmed = await self.agents.is_confirmed(instance, routing_version, deadline_s)
        for name, server in seats_of(instance):
            await self.keepers[name].confirm_out(server)
        return confirmed

    async def sessions(self, instance: Instance) -> int | None:
        """Return the sum over the balancers that can say."""
        counts = [await self.keepers[name].sessions(server) for name, server in seats_of(instance)]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    async def put_back(self, instance: Instance) -> tuple[str, ...]:
        """Put it into every balancer, with the share that the routing table gives it."""
        seats = seats_of(instance)
        share = await self._share_in_table(instance) if seats else 0.0
        notes = [await self.keepers[name].put_back(server, share) for name, server in seats]
        return (*await self.agents.put_back(instance), *filter(None, notes))

    async def _share_in_table(self, instance: Instance) -> float:
        deadline = self.pace.now() + TABLE_DEADLINE_S
        while not (share := self._wishes.share_of(instance.instance_id, instance.pool)):
            if self.pace.now() >= deadline:
                raise StillOutError(
                    f"no routing table has {instance.instance_id} in rotation; nothing was put back"
                )
            await self.pace.sleep(POLL_S)
        return share

    async def _take_out_of(self, name: str, server: Server) -> GatemeshError | None:
        try:
            await self.keepers[name].take_out(server)
        except GatemeshError as error:
            return error
        return None

    async def _keep(self, keeper: Keeper) -> None:
        while not await keeper.verify():
            await self.pace.sleep(LOOK_S)
        while True:
            await keeper.assert_again()
            await self.pace.sleep(LOOK_S)

    def _listed_at(self, name: str) -> Iterable[tuple[Server, Instance]]:
        for instance in self.instances.values():
            for listed_at, server in seats_of(instance):
                if listed_at == name:
                    yield server, instance

    def _shares(self, name: str) -> Mapping[Server, float]:
        return {
            server: share
            for server, instance in self._listed_at(name)
            if (share := self._wishes.share_of(instance.instance_id, instance.pool)) is not None
        }


def fleet_rotation(fleet: Fleet, agents: AgentRouting, pace: Pace, clock: Clock) -> FleetRotation:
    """Return the rotation of a fleet with all balancers that its file describes."""
    rotation = FleetRotation(agents, fleet.instances, pace, clock)
    for name, settings in fleet.balancers.items():
        rotation.add(name, balancer_for(name, settings, pace))
    return rotation
