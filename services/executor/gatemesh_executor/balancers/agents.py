"""Agents as the balancer: each says which version of the routing table it applied."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatemesh_common.messages import RoutingApplied
from gatemesh_executor.instances import Instance
from gatemesh_executor.pace import Pace

POLL_S = 0.05
HEARTBEAT_S = 2.5
"""Every agent speaks once in this time: the table is repeated every two seconds."""


@dataclass(frozen=True)
class Heard:
    """The last word of one agent."""

    version: int
    at: float


def all_applied(agents: Mapping[str, Heard], version: int, now: float, silence_s: float) -> bool:
    """Return True when every agent heard from lately routes by that version or a later one.

    With no agent heard from lately nothing is confirmed.
    """
    lately = [heard for heard in agents.values() if now - heard.at <= silence_s]
    return bool(lately) and all(heard.version >= version for heard in lately)


@dataclass
class AgentRouting:
    """Follows what the agents say; the table itself is the manager's and changes nothing here."""

    silence_s: float
    pace: Pace
    _pools: dict[str, dict[str, Heard]] = field(default_factory=dict)
    _listening_since: float | None = None

    def listen(self) -> None:
        """Mark the moment from which agents are heard."""
        self._listening_since = self.pace.now()

    def hear(self, applied: RoutingApplied) -> None:
        """Note an agent's word; a restarted agent may fall back to a lower version."""
        agents = self._pools.setdefault(applied.pool, {})
        agents[applied.agent_id] = Heard(applied.version, self.pace.now())
        self._forget_the_silent(agents)

    async def take_out(self, instance: Instance, routing_version: int) -> None:
        """Do nothing: the manager's table already lacks the instance."""

    async def put_back(self, instance: Instance) -> tuple[str, ...]:
        """Do nothing: the manager's table already holds the instance."""
        return ()

    async def sessions(self, instance: Instance) -> int | None:
        """Return None: the engine itself waits for its running requests."""
        return None

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Wait until every agent of the pool has applied the version."""
        deadline = self.pace.now() + deadline_s
        while not self._is_applied(instance.pool, routing_version):
            if self.pace.now() >= deadline:
                return False
            await self.pace.sleep(POLL_S)
        return True

    def _is_applied(self, pool: str, version: int) -> bool:
        now = self.pace.now()
        # Right after the start some agents have not been heard yet; silence is no consent.
        if self._listening_since is None or now - self._listening_since < HEARTBEAT_S:
            return False
        return all_applied(self._pools.get(pool, {}), version, now, self.silence_s)

    def _forget_the_silent(self, agents: dict[str, Heard]) -> None:
        oldest = self.pace.now() - self.silence_s
        for agent_id in [name for name, heard in agents.items() if heard.at < oldest]:
            del agents[agent_id]
