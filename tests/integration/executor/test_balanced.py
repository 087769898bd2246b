"""The executor as a process, with a real HAProxy in front of its engines."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.contract.executor.balancer_rigs import HaproxyRig, needs

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import (
    DrainInstance,
    InstanceState,
    ReadmitInstance,
    ReportOutcome,
    RestartInstance,
    RoutedInstance,
    RoutingTable,
)
from gatemesh_executor.balancers.base import BalancerUnavailableError, Standing

from .conftest import DEADLINE_S, ExecutorProcess, Manager, Platform
from .test_executor import running_life, until_serving

pytestmark = [pytest.mark.integration, needs("haproxy")]


@pytest.fixture
def front(platform: Platform) -> Iterator[HaproxyRig]:
    """Give a running HAProxy that the instances file names."""
    first, second = (f"127.0.0.1:{platform.ports[name]}" for name in ("engine-0", "engine-1"))
    rig = HaproxyRig((first, second))
    with platform.instances_file.open("a") as file:
        file.write(
            '\n[pools.demo]\nbalancers = [{ name = "front" }]\n'
            f'[balancers.front]\nkind = "haproxy"\nsocket = "unix://{rig.socket}"\n'
            'backend = "chat"\ndeadline_s = 10\n'
        )
    try:
        yield rig.start()
    finally:
        rig.close()


class Tables:
    """The manager's routing table, repeated until HAProxy does as it says."""

    def __init__(self, manager: Manager, front: HaproxyRig) -> None:
        self._manager = manager
        self._front = front
        self.version = 0

    async def tell(self, weight: float) -> Standing:
        """Publish the next version until it shows; 0 means draining."""
        self.version += 1
        async with asyncio.timeout(DEADLINE_S):
            while True:
                await self._manager.publisher.publish(self._table(weight))
                found = await self.look()
                if found.out == (weight == 0) and (found.out or found.weight == 100 * weight):
                    return found
                await asyncio.sleep(0.1)

    async def look(self) -> Standing:
        """Return how HAProxy treats the first engine."""
        return await self._front.balancer.look(self._front.servers[0])

    def _table(self, weight: float) -> RoutingTable:
        row = RoutedInstance(
            instance_id="engine-0",
            base_url="http://127.0.0.1:1",
            state=InstanceState.HEALTHY if weight else InstanceState.RESTARTING,
            incarnation=1,
            weight=weight,
        )
        return RoutingTable(
            timestamp=utc_now(), pool="demo", version=self.version, instances=(row,)
        )


async def test_haproxy_follows_table_and_commands_through_reload_and_deafness(
    platform: Platform, executor: ExecutorProcess, manager: Manager, front: HaproxyRig
) -> None:
    """A whole repair: weight, drain, what a reload forgot, restart, and back."""
    platform.start()
    executor.start()
    life_id = await running_life(platform, manager)
    await until_serving(platform)
    tables = Tables(manager, front)
    await tables.tell(0.3)

    drain = await manager.order(DrainInstance, life_id=life_id, grace_s=10, routing_version=2)
    assert (await manager.report_of(drain)).outcome is ReportOutcome.SUCCEEDED
    assert manager.steps_of(drain) == ["taken_out", "unconfirmed", "stopped"]
    assert (await tables.look()).out
    await front.reload()
    await tables.tell(0.0)

    restart = await manager.order(RestartInstance, life_id=life_id, grace_s=5)
    assert (await manager.report_of(restart)).outcome is ReportOutcome.SUCCEEDED
    assert (await tables.look()).out
    readmit = await manager.order(ReadmitInstance)
    await tables.tell(0.5)
    assert (await manager.report_of(readmit)).outcome is ReportOutcome.SUCCEEDED
    assert "put_back" in manager.steps_of(readmit)


async def test_a_deaf_haproxy_keeps_the_engine_from_being_stopped(
    platform: Platform, executor: ExecutorProcess, manager: Manager, front: HaproxyRig
) -> None:
    """The drain waits, and goes on where it stood when HAProxy hears again."""
    platform.start()
    executor.start()
    life_id = await running_life(platform, manager)
    await until_serving(platform)
    front.go_away()
    with pytest.raises(BalancerUnavailableError):
        await front.balancer.look(front.servers[0])
    drain = await manager.order(DrainInstance, life_id=life_id, grace_s=10, routing_version=2)
    again = await manager.observed(lambda it: it.running and it.timestamp > drain.timestamp)
    assert again.life_id == life_id
    assert manager.steps_of(drain) == []
    front.come_back()
    assert (await manager.report_of(drain)).outcome is ReportOutcome.SUCCEEDED
    assert manager.steps_of(drain) == ["taken_out", "unconfirmed", "stopped"]
