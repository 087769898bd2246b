"""Agents and load balancers as one rotation."""

from datetime import timedelta

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.messages import InstanceState, RoutedInstance, RoutingTable
from gatemesh_executor.balancers.agents import AgentRouting
from gatemesh_executor.balancers.base import BalancerUnavailableError, Server, StillOutError
from gatemesh_executor.balancers.fake import FakeBalancer
from gatemesh_executor.balancers.haproxy import Haproxy
from gatemesh_executor.balancers.nginx import Nginx
from gatemesh_executor.balancers.rotation import (
    TABLE_DEADLINE_S,
    FleetRotation,
    fleet_rotation,
    seats_of,
)
from gatemesh_executor.instances import parse_fleet

from .conftest import START, Time

FILE = """
[[instances]]
instance_id = "engine-0"
base_url = "http://127.0.0.1:8000"
program = "engine-0"
balancers = [{ name = "front" }, { name = "edge" }]

[[instances]]
instance_id = "engine-1"
base_url = "http://127.0.0.1:8001"
program = "engine-1"

[balancers.front]
kind = "haproxy"
socket = "unix:///run/haproxy/admin.sock"
backend = "chat"

[balancers.edge]
kind = "nginx"
upstream_file = "/etc/nginx/gatemesh/chat.servers"
"""
FLEET = parse_fleet(FILE, "f.toml")
ENGINE, UNLISTED = FLEET.instances["engine-0"], FLEET.instances["engine-1"]
AT_FRONT, AT_EDGE = Server("chat", "engine-0"), Server("", "127.0.0.1:8000")


def table(version: int, weight: float) -> RoutingTable:
    """Return a table that has the engine at a weight."""
    row = RoutedInstance(
        instance_id="engine-0",
        base_url=ENGINE.base_url,
        state=InstanceState.HEALTHY if weight else InstanceState.DRAINING,
        incarnation=1,
        weight=weight,
    )
    return RoutingTable(timestamp=START, pool="default", version=version, instances=(row,))


class Scene:
    """A rotation with two balancers in memory."""

    def __init__(self) -> None:
        self.time = Time()
        agents = AgentRouting(6.0, self.time.pace)
        self.rotation = FleetRotation(agents, FLEET.instances, self.time.pace, self.time.clock)
        self.front, self.edge = FakeBalancer(), FakeBalancer()
        self.rotation.add("front", self.front)
        self.rotation.add("edge", self.edge)


@pytest.fixture
def scene() -> Scene:
    """Give a scene of this test's own."""
    return Scene()


def test_the_file_says_which_balancers_there_are() -> None:
    """With the names that they have for an instance; without any, only agents route."""
    rotation = fleet_rotation(FLEET, AgentRouting(6.0, Time().pace), Time().pace, Time().clock)
    assert isinstance(rotation.keepers["front"].balancer, Haproxy)
    assert isinstance(rotation.keepers["edge"].balancer, Nginx)
    assert rotation.keepers["front"].servers == {AT_FRONT}
    assert seats_of(ENGINE) == (("front", AT_FRONT), ("edge", AT_EDGE))
    assert seats_of(UNLISTED) == ()


async def test_out_of_all_and_back_by_the_table(scene: Scene) -> None:
    """The weight is the table's."""
    await scene.rotation.take_out(ENGINE, 2)
    assert (await scene.front.look(AT_FRONT)).out
    assert (await scene.edge.look(AT_EDGE)).out
    scene.rotation.hear(table(2, 0.3))
    assert await scene.rotation.put_back(ENGINE) == ()
    assert (await scene.front.look(AT_FRONT)).weight == 30
    assert not (await scene.edge.look(AT_EDGE)).out


async def test_one_at_fault_does_not_spare_the_others(scene: Scene) -> None:
    """The step fails all the same, and is tried again."""
    scene.front.down = True
    with pytest.raises(BalancerUnavailableError):
        await scene.rotation.take_out(ENGINE, 2)
    assert (await scene.edge.look(AT_EDGE)).out


async def test_agents_may_stay_silent_but_balancers_may_not(scene: Scene) -> None:
    """False is what the history calls unconfirmed; a dead balancer is raised."""
    await scene.rotation.take_out(ENGINE, 2)
    assert not await scene.rotation.is_confirmed(ENGINE, 2, 1.0)
    scene.edge.down = True
    with pytest.raises(BalancerUnavailableError):
        await scene.rotation.is_confirmed(ENGINE, 2, 1.0)


async def test_nothing_comes_back_against_the_table(scene: Scene) -> None:
    """A late readmission must not undo a newer accusation."""
    await scene.rotation.take_out(ENGINE, 2)
    scene.rotation.hear(table(2, 0.0))
    with pytest.raises(StillOutError, match="engine-0"):
        await scene.rotation.put_back(ENGINE)
    assert scene.time.elapsed_s == pytest.approx(TABLE_DEADLINE_S, abs=0.1)
    assert (await scene.front.look(AT_FRONT)).out


async def test_a_table_under_way_is_waited_for(scene: Scene) -> None:
    """Command and table come on two queues."""
    scene.rotation.hear(table(2, 0.0))
    scene.time.on_sleep.append(
        lambda: scene.rotation.hear(table(3, 0.5)) if scene.time.elapsed_s > 1 else None
    )
    await scene.rotation.put_back(ENGINE)
    assert (await scene.front.look(AT_FRONT)).weight == 50


async def test_who_is_listed_nowhere_needs_no_table(scene: Scene) -> None:
    """As without balancers at all."""
    await scene.rotation.take_out(UNLISTED, 2)
    assert await scene.rotation.put_back(UNLISTED) == ()
    assert await scene.rotation.sessions(UNLISTED) is None
    assert scene.time.elapsed_s == 0


async def test_requests_are_counted_where_somebody_counts(scene: Scene) -> None:
    """nginx does not."""
    scene.front.standings[AT_FRONT] = (await scene.front.look(AT_FRONT)).__class__(
        out=True, weight=100, full_weight=100, sessions=3
    )
    assert await scene.rotation.sessions(ENGINE) == 3


async def test_a_table_from_the_future_can_be_replaced(scene: Scene) -> None:
    """A clock gone wild: the next lower version would wait for that day."""
    wild = table(9, 0.0).model_copy(update={"timestamp": START + timedelta(days=900)})
    scene.rotation.hear(wild)
    scene.time.elapsed_s = 20
    anew = table(1, 1.0).model_copy(update={"timestamp": scene.time.clock()})
    scene.rotation.hear(anew)
    await scene.rotation.put_back(ENGINE)
    assert not (await scene.front.look(AT_FRONT)).out


async def test_a_wrong_name_ends_the_run(scene: Scene) -> None:
    """The operator reads it at the start."""
    scene.front.unknown.add(AT_FRONT)
    del scene.rotation.keepers["edge"]
    with pytest.raises(SettingsError, match="chat/engine-0"):
        await scene.rotation.run()
