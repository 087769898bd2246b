"""Drains behind real load balancers: no stream is cut, and nothing new comes after the word."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import (
    DrainInstance,
    InstanceState,
    ReadmitInstance,
    RoutedInstance,
    RoutingTable,
    StepName,
)
from gatemesh_executor.backends.base import Ending
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.balancers.agents import AgentRouting
from gatemesh_executor.balancers.base import BalancerUnavailableError
from gatemesh_executor.balancers.rotation import FleetRotation
from gatemesh_executor.health import Health
from gatemesh_executor.instances import Instance, Instances
from gatemesh_executor.jobs import Job, Limits, Tools
from gatemesh_executor.pace import Pace
from gatemesh_executor.playbooks import run_playbook

from .balancer_rigs import HaproxyRig, NginxRig, RealRig, needs
from .streaming_engines import (
    StreamingEngine,
    Streams,
    Traffic,
    clients,
    in_background,
    running_engines,
)

pytestmark = pytest.mark.integration

STREAMS = 200
GRACE_S = 120.0
DEADLINE_S = 200.0


class ServingBackend(FakeBackend):
    """Stops real engines as SIGTERM would."""

    def __init__(self, instances: Instances, engines: Mapping[str, StreamingEngine]) -> None:
        super().__init__(instances, utc_now)
        self._engines = engines
        self.stopped_at: float | None = None
        self.running_at_stop = 0

    async def stop(self, instance: Instance, life_id: str | None, grace_s: float) -> Ending:
        """Have it accept nothing more and end its running requests."""
        engine = self._engines[instance.instance_id]
        self.stopped_at, self.running_at_stop = time.monotonic(), engine.running
        left = await engine.stop(grace_s)
        await super().stop(instance, life_id, grace_s)
        return Ending.LEFT if left else Ending.KILLED


class Ready:
    """Every engine accepts connections."""

    async def look(self, base_url: str) -> Health:
        """Say so."""
        return Health.READY


@dataclass
class Steps:
    """Hears of each step, and when it was done."""

    at: dict[StepName, float] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep the moment."""
        self.at[step] = time.monotonic()
        self.news.set()

    async def until(self, step: StepName) -> float:
        """Wait for a step and return its moment."""
        while step not in self.at:
            self.news.clear()
            await self.news.wait()
        return self.at[step]


@dataclass
class Scene:
    """Two engines behind a balancer, and the executor's part that acts on them."""

    rig: RealRig
    engines: list[StreamingEngine]
    instances: Instances
    backend: ServingBackend
    rotation: FleetRotation
    steps: Steps = field(default_factory=Steps)

    def table(self, version: int, **weights: float) -> RoutingTable:
        """Return a routing table; engines that are not named have full weight, 0 is draining."""
        rows = (
            RoutedInstance(
                instance_id=name,
                base_url=instance.base_url,
                state=InstanceState.HEALTHY if weight else InstanceState.DRAINING,
                incarnation=1,
                weight=weight,
            )
            for name, instance in self.instances.items()
            for weight in [weights.get(name.replace("-", "_"), 1.0)]
        )
        return RoutingTable(
            timestamp=utc_now(), pool="default", version=version, instances=tuple(rows)
        )

    async def obey(self, kind: type[DrainInstance | ReadmitInstance], expires_s: float) -> Job:
        """Carry a command about engine-0 out."""
        observed = await self.backend.observe_all()
        command = kind.model_validate(
            {
                "timestamp": utc_now(),
                "instance_id": "engine-0",
                "life_id": observed["engine-0"].life_id,
                "incarnation": 1,
                "fence": 1,
                "grace_s": GRACE_S,
                "expires_at": utc_now() + timedelta(seconds=expires_s),
                **({"routing_version": 2} if kind is DrainInstance else {}),
            }
        )
        job = Job(command, self.instances["engine-0"])
        limits = Limits(confirm_deadline_s=0.1)
        tools = Tools(self.backend, self.rotation, Ready(), limits)
        await run_playbook(tools, job, self.steps, utc_now)
        return job


def confirming_agents() -> AgentRouting:
    """Return agents that nobody has heard: their silence holds up nothing."""
    return AgentRouting(6.0, Pace())


async def scene_of(rig: RealRig, engines: list[StreamingEngine]) -> Scene:
    """Return a scene in which both engines run and are in rotation."""
    instances = {
        engine.name: Instance(
            instance_id=engine.name,
            base_url=f"http://{engine.address}",
            program=engine.name,
            balancers=(listing,),
        )
        for engine, listing in zip(engines, rig.listings(), strict=True)
    }
    backend = ServingBackend(instances, {engine.name: engine for engine in engines})
    for instance in instances.values():
        await backend.start(instance)
    rotation = FleetRotation(confirming_agents(), instances, Pace(), utc_now)
    rotation.add(rig.listings()[0].name, rig.balancer)
    scene = Scene(rig, engines, instances, backend, rotation)
    rotation.hear(scene.table(1))
    return scene


async def until(holds: object) -> None:
    """Wait until something of another task holds."""
    assert callable(holds)
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 (other tasks send no events)
            await asyncio.sleep(0.05)


class DrainContract:
    """Needs fixtures `engines` and `rig`."""

    counts_sessions = True

    @pytest.fixture
    async def engines(self) -> object:
        """Give two engines that stream."""
        async with running_engines() as engines:
            yield engines

    async def test_no_stream_is_cut_and_nothing_comes_after_the_word(
        self, rig: RealRig, engines: list[StreamingEngine]
    ) -> None:
        """200 streams under way, half of them on the engine that is drained within its grace."""
        scene = await scene_of(rig, engines)
        streams, traffic = Streams(rig.url), Traffic(rig.url)
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(clients())
            fresh = await stack.enter_async_context(clients(keep_alive=False))
            reading = [asyncio.create_task(streams.read(session)) for _ in range(STREAMS)]
            await until(lambda: streams.begun == STREAMS)
            assert min(engine.running for engine in engines) > STREAMS / 4
            asking = (traffic.run(session), traffic.run(session), traffic.run(fresh))
            await stack.enter_async_context(in_background(*asking))
            draining = asyncio.create_task(scene.obey(DrainInstance, 2 * GRACE_S))
            confirmed_at = await asyncio.wait_for(scene.steps.until("taken_out"), DEADLINE_S)
            await until(lambda: len(traffic.after(confirmed_at)) > 60)
            engines[0].finish.set()
            job = await draining
            await asyncio.gather(*reading)
        assert (streams.whole, streams.cut) == (STREAMS, [])
        assert not job.killed
        assert set(traffic.after(confirmed_at)) == {"engine-1"}
        assert max(engines[0].sent) <= confirmed_at
        assert traffic.faults == []
        assert scene.backend.stopped_at is not None
        assert scene.backend.stopped_at >= confirmed_at
        # Where requests are counted SIGTERM waits for the last one; else the engine does.
        assert (scene.backend.running_at_stop == 0) is self.counts_sessions

    async def test_without_the_balancers_word_there_is_no_stop(
        self, rig: RealRig, engines: list[StreamingEngine]
    ) -> None:
        """The drain fails, the engine runs; put right, the same drain succeeds."""
        scene = await scene_of(rig, engines)
        rig.go_away()
        with pytest.raises(BalancerUnavailableError):
            await scene.obey(DrainInstance, 0.5)
        assert scene.backend.stopped_at is None
        assert "taken_out" not in scene.steps.at
        rig.come_back()
        await scene.obey(DrainInstance, DEADLINE_S)
        assert scene.backend.stopped_at is not None

    async def test_the_table_is_followed_through_reloads(
        self, rig: RealRig, engines: list[StreamingEngine]
    ) -> None:
        """Weights of condition C, outs, and what a reload forgets; nobody orders any of it."""
        scene = await scene_of(rig, engines)
        async with in_background(scene.rotation.run()):
            scene.rotation.hear(scene.table(2, engine_0=0.0, engine_1=0.3))
            await until_standing(rig, (True, 100), (False, 30))
            await rig.reload()
            await until_standing(rig, (True, 100), (False, 30))
            scene.rotation.hear(scene.table(3, engine_0=0.1))
            await until_standing(rig, (False, 10), (False, 100))

    async def test_readmission_waits_for_the_table(
        self, rig: RealRig, engines: list[StreamingEngine]
    ) -> None:
        """It comes back with the weight that the table gives, and not before."""
        scene = await scene_of(rig, engines)
        one, _ = rig.servers
        scene.rotation.hear(scene.table(2, engine_0=0.0))
        await rig.balancer.take_out(one)
        readmitting = asyncio.create_task(scene.obey(ReadmitInstance, DEADLINE_S))
        scene.rotation.hear(scene.table(3, engine_0=0.3))
        await readmitting
        found = await rig.balancer.look(one)
        assert (found.out, found.weight) == (False, 30)


async def until_standing(rig: RealRig, *wished: tuple[bool, int]) -> None:
    """Wait until each server is out or in as wished, at its weight."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = [await rig.balancer.look(server) for server in rig.servers]
            if [(each.out, each.weight) for each in found] == list(wished):
                return
            await asyncio.sleep(0.05)


@needs("haproxy")
class TestDrainsBehindHaproxy(DrainContract):
    """Sessions are counted, so SIGTERM comes when none is left."""

    @pytest.fixture
    def rig(self, engines: list[StreamingEngine]) -> Iterator[HaproxyRig]:
        """Give a running HAProxy."""
        rig = HaproxyRig((engines[0].address, engines[1].address), deadline_s=20.0)
        try:
            yield rig.start()
        finally:
            rig.close()

    async def test_a_reload_in_the_middle_of_a_drain_lets_nothing_back(
        self, rig: HaproxyRig, engines: list[StreamingEngine]
    ) -> None:
        """HAProxy forgets; the executor asserts again, and the streams go on in the old worker."""
        scene = await scene_of(rig, engines)
        streams = Streams(rig.url)
        async with clients() as session, in_background(scene.rotation.run()):
            reading = [asyncio.create_task(streams.read(session)) for _ in range(4)]
            await until(lambda: streams.begun == 4)
            draining = asyncio.create_task(scene.obey(DrainInstance, 2 * GRACE_S))
            await asyncio.wait_for(scene.steps.until("unconfirmed"), DEADLINE_S)
            await rig.reload()
            await until_standing(rig, (True, 100), (False, 100))
            engines[0].finish.set()
            await draining
            await asyncio.gather(*reading)
        assert (streams.whole, streams.cut) == (4, [])


@needs("nginx")
class TestDrainsBehindNginx(DrainContract):
    """Nobody counts sessions: the engine's own grace lets them end."""

    counts_sessions = False

    @pytest.fixture
    def rig(self, engines: list[StreamingEngine]) -> Iterator[NginxRig]:
        """Give a running nginx."""
        rig = NginxRig((engines[0].address, engines[1].address))
        try:
            yield rig.start()
        finally:
            rig.close()
