"""What every engine backend promises, run against the fake and a real supervisord."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Protocol

import pytest

from gatemesh_common.clock import utc_now
from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Ending,
    EngineBackend,
    Observation,
    Phase,
    RollBackNotOfferedError,
    StartFailedError,
)
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.backends.process_group import living_members
from gatemesh_executor.backends.supervisor import SupervisorBackend, pid_of
from gatemesh_executor.backends.xmlrpc import XmlRpcClient
from gatemesh_executor.instances import Instance, Instances, RollBack

from .conftest import GOOD, PASSWORD, USER, Supervisord, eventually

pytestmark = pytest.mark.integration


def instances_of(*names: str) -> Instances:
    """Return instances whose program has their own name."""
    return {
        name: Instance(instance_id=name, base_url="http://127.0.0.1:1", program=name)
        for name in names
    }


QUICK = f"{GOOD}\nstartsecs=0"
INSTANCES = instances_of("steady", "stubborn", "fragile", "broken")


class Rig(Protocol):
    """A backend with four engines, all stopped, and hands on what lies under it."""

    @property
    def backend(self) -> EngineBackend:
        """The backend under test."""

    @property
    def instances(self) -> Instances:
        """Its instances by their habits; only `steady` knows a way back to a former version."""

    async def until_serving(self, life_id: str) -> None:
        """Wait until a started engine's habits hold."""

    async def steps_back(self, habit: str) -> int:
        """Return how many model versions an engine's next life is behind the present one."""

    async def tell_to_stop(self, habit: str) -> None:
        """Have somebody else tell an engine to stop, and wait for nothing but to be heard."""

    async def crash(self, habit: str) -> None:
        """Make an engine end by itself, with exit code 0."""

    async def go_away(self) -> None:
        """Make the platform unreachable."""


class FakeRig:
    """The fake, with the habits of the real programs."""

    def __init__(self) -> None:
        self.instances = INSTANCES
        self.backend = FakeBackend(INSTANCES, utc_now)
        self.backend.behave("steady", drain_s=0.2)
        self.backend.behave("stubborn", drain_s=float("inf"))
        self.backend.behave("broken", fails_to_start=True)
        self.backend.behave("stubborn", knows_a_way_back=False)

    async def until_serving(self, life_id: str) -> None:
        """They hold at once."""

    async def steps_back(self, habit: str) -> int:
        """Ask the record."""
        return int(habit in self.backend.rolled_back)

    async def tell_to_stop(self, habit: str) -> None:
        """Note it."""
        self.backend.tell_to_stop(habit)

    async def crash(self, habit: str) -> None:
        """End its record."""
        self.backend.crash(habit)

    async def go_away(self) -> None:
        """Answer nothing any more."""
        self.backend.down = True


class SupervisorRig:
    """A real supervisord."""

    def __init__(self, daemon: Supervisord, client: XmlRpcClient) -> None:
        self._daemon = daemon
        self._leave = daemon.folder / "leave"
        self._present = daemon.folder / "present"
        self._present.write_text("2")
        self.instances = {**INSTANCES, "steady": self._with_a_way_back("steady")}
        self.backend = SupervisorBackend(client, self.instances, 60.0, local=True)
        daemon.start(
            {
                "steady": f"{daemon.command('--drain-s', '0.2')}\n{QUICK}",
                "stubborn": f"{daemon.command('--ignore-sigterm', '--worker')}\n{QUICK}",
                "fragile": f"{daemon.command('--leave-on', str(self._leave))}\n{QUICK}",
                "broken": f"command=/nowhere/engine\n{GOOD}",
            }
        )

    async def until_serving(self, life_id: str) -> None:
        """Wait for the program's mark."""
        await until((self._daemon.folder / f"ready-{pid_of(life_id)}").exists)

    def _with_a_way_back(self, name: str) -> Instance:
        way = RollBack(command=("sh", "-c", "echo 1 > present"), folder=self._daemon.folder)
        return INSTANCES[name].model_copy(update={"roll_back": way})

    async def steps_back(self, habit: str) -> int:
        """Look at what the command has written."""
        return 2 - int(self._present.read_text())

    async def tell_to_stop(self, habit: str) -> None:
        """Ask supervisord."""
        wait = False
        self._daemon.call("supervisor.stopProcess", habit, wait)

    async def crash(self, habit: str) -> None:
        """Tell the program to end by itself."""
        self._leave.touch()
        eventually(
            lambda: self._daemon.call("supervisor.getProcessInfo", habit)["pid"] == 0  # type: ignore[index]
        )
        self._leave.unlink()

    async def go_away(self) -> None:
        """End supervisord and its programs."""
        self._daemon.stop()


async def look(backend: EngineBackend, instance_id: str) -> Observation:
    """Return what the backend says of one instance."""
    return (await backend.observe_all())[instance_id]


async def seen(rig: Rig, habit: str) -> Observation:
    """Return what the rig's backend says of the instance with this habit."""
    return await look(rig.backend, rig.instances[habit].instance_id)


async def start(rig: Rig, habit: str) -> str:
    """Start an engine and return its life."""
    await rig.backend.start(rig.instances[habit])
    life_id = (await seen(rig, habit)).life_id
    assert life_id is not None
    await rig.until_serving(life_id)
    return life_id


class BackendContract:
    """Needs a fixture `rig`."""

    async def test_every_instance_is_observed(self, rig: Rig) -> None:
        """None is left out, stopped ones neither."""
        observed = await rig.backend.observe_all()
        assert set(observed) == {one.instance_id for one in rig.instances.values()}
        assert not any(found.running for found in observed.values())

    async def test_a_started_engine_has_a_life(self, rig: Rig) -> None:
        """The manager learns its name and when it began."""
        before = datetime.now(UTC).replace(microsecond=0)
        await rig.backend.start(rig.instances["steady"])
        found = await seen(rig, "steady")
        assert found.phase in (Phase.STARTING, Phase.RUNNING)
        assert found.life_id
        assert found.started_at is not None
        assert before <= found.started_at <= datetime.now(UTC)

    async def test_start_twice(self, rig: Rig) -> None:
        """A redelivered command starts nothing anew."""
        assert await start(rig, "steady") == await start(rig, "steady")

    async def test_stop_lets_the_engine_leave(self, rig: Rig) -> None:
        """Running requests end within the grace."""
        life_id = await start(rig, "steady")
        assert await rig.backend.stop(rig.instances["steady"], life_id, 20.0) is Ending.LEFT
        assert (await seen(rig, "steady")).phase is Phase.STOPPED

    async def test_stop_twice(self, rig: Rig) -> None:
        """A redelivered command is harmless."""
        life_id = await start(rig, "steady")
        await rig.backend.stop(rig.instances["steady"], life_id, 20.0)
        assert await rig.backend.stop(rig.instances["steady"], life_id, 20.0) is Ending.ABSENT

    async def test_stop_without_a_name_ends_what_runs(self, rig: Rig) -> None:
        """A command about a life nobody knows is carried out on the one that runs."""
        await start(rig, "steady")
        assert await rig.backend.stop(rig.instances["steady"], None, 20.0) is Ending.LEFT

    async def test_another_life_is_left_alone(self, rig: Rig) -> None:
        """A late command does not hit the life that came after."""
        old = await start(rig, "steady")
        await rig.backend.stop(rig.instances["steady"], old, 20.0)
        new = await start(rig, "steady")
        assert new != old
        assert await rig.backend.stop(rig.instances["steady"], old, 20.0) is Ending.ABSENT
        assert (await seen(rig, "steady")).life_id == new

    async def test_an_engine_past_its_grace_is_killed(self, rig: Rig) -> None:
        """One that ignores SIGTERM does not hold up the repair."""
        life_id = await start(rig, "stubborn")
        assert await rig.backend.stop(rig.instances["stubborn"], life_id, 0.3) is Ending.KILLED
        assert not (await seen(rig, "stubborn")).running

    async def test_a_life_that_was_told_to_stop_is_seen_as_such(self, rig: Rig) -> None:
        """Whoever stops it again knows that requests may still run behind its closed door."""
        life_id = await start(rig, "stubborn")
        await rig.tell_to_stop("stubborn")
        found = await seen(rig, "stubborn")
        assert (found.phase, found.life_id) == (Phase.STOPPING, life_id)
        assert await rig.backend.stop(rig.instances["stubborn"], life_id, 0.3) is Ending.KILLED

    async def test_an_exit_with_code_0_is_seen(self, rig: Rig) -> None:
        """That is how a dead engine looks."""
        await start(rig, "fragile")
        await rig.crash("fragile")
        found = await seen(rig, "fragile")
        assert (found.phase, found.exit_code, found.life_id) == (Phase.EXITED, 0, None)

    async def test_a_dead_engine_starts_again(self, rig: Rig) -> None:
        """A crash does not lock the instance."""
        old = await start(rig, "fragile")
        await rig.crash("fragile")
        assert await start(rig, "fragile") != old

    async def test_an_impossible_start_is_told(self, rig: Rig) -> None:
        """The restart budget counts it."""
        with pytest.raises(StartFailedError):
            await rig.backend.start(rig.instances["broken"])
        assert not (await seen(rig, "broken")).running

    async def test_rolling_back_goes_one_version_back(self, rig: Rig) -> None:
        """However often it is asked for; the life that runs may go on."""
        await start(rig, "steady")
        for _ in range(2):
            await rig.backend.roll_back(rig.instances["steady"])
        assert await rig.steps_back("steady") == 1
        await rig.backend.start(rig.instances["steady"])
        assert (await seen(rig, "steady")).running

    async def test_an_engine_without_a_way_back_is_left_alone(self, rig: Rig) -> None:
        """And that is told."""
        life_id = await start(rig, "stubborn")
        with pytest.raises(RollBackNotOfferedError):
            await rig.backend.roll_back(rig.instances["stubborn"])
        assert (await seen(rig, "stubborn")).life_id == life_id

    async def test_an_absent_platform_is_told(self, rig: Rig) -> None:
        """Silence is neither a stopped nor a running engine."""
        await rig.go_away()
        with pytest.raises(BackendUnavailableError):
            await rig.backend.observe_all()
        with pytest.raises(BackendUnavailableError):
            await rig.backend.start(rig.instances["steady"])
        with pytest.raises(BackendUnavailableError):
            await rig.backend.stop(rig.instances["steady"], None, 1.0)
        with pytest.raises(BackendUnavailableError):
            await rig.backend.verify()


class TestFakeBackend(BackendContract):
    """The fake keeps the promises that tests rely on."""

    @pytest.fixture
    def rig(self) -> Rig:
        """Give the fake."""
        return FakeRig()


@pytest.fixture
async def client(supervisord: Supervisord) -> AsyncIterator[XmlRpcClient]:
    """Give a client of this test's supervisord."""
    async with XmlRpcClient(supervisord.url, USER, PASSWORD, 5.0) as client:
        yield client


class TestSupervisorBackend(BackendContract):
    """The real thing."""

    @pytest.fixture
    def rig(self, supervisord: Supervisord, client: XmlRpcClient) -> Rig:
        """Give a real supervisord with real processes."""
        return SupervisorRig(supervisord, client)

    async def test_the_kill_goes_to_the_whole_group(self, rig: Rig) -> None:
        """Workers that outlive their server would keep the GPU."""
        life_id = await start(rig, "stubborn")
        group = pid_of(life_id)
        assert group is not None
        await until_members(group, 2)
        await rig.backend.stop(INSTANCES["stubborn"], life_id, 0.2)
        assert living_members(group) == ()

    async def test_workers_of_a_dead_server_are_ended(
        self, rig: Rig, supervisord: Supervisord
    ) -> None:
        """SIGKILL of the server alone leaves them; the restart must not meet them."""
        life_id = await start(rig, "stubborn")
        group = pid_of(life_id)
        assert group is not None
        await until_members(group, 2)
        supervisord.call("supervisor.signalProcess", "stubborn", "KILL")
        await until_phase(rig.backend, "stubborn", Phase.EXITED)
        assert len(living_members(group)) == 1
        assert await rig.backend.stop(INSTANCES["stubborn"], life_id, 5.0) is Ending.ABSENT
        assert living_members(group) == ()

    async def test_a_start_waits_for_a_stop_under_way(
        self, rig: Rig, supervisord: Supervisord
    ) -> None:
        """Supervisor itself would refuse it."""
        old, wait = await start(rig, "steady"), False
        supervisord.call("supervisor.stopProcess", "steady", wait)
        assert await start(rig, "steady") != old

    async def test_one_slow_stop_does_not_hold_up_another(self, rig: Rig) -> None:
        """Each instance goes its own way."""
        slow = await start(rig, "stubborn")
        await start(rig, "steady")
        stopping = asyncio.create_task(rig.backend.stop(INSTANCES["stubborn"], slow, 3.0))
        assert await rig.backend.stop(INSTANCES["steady"], None, 20.0) is Ending.LEFT
        assert not stopping.done()
        assert await stopping is Ending.KILLED


async def until_members(group: int, count: int) -> None:
    """Wait until a group has so many living members."""
    await until(lambda: len(living_members(group)) >= count)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something outside of this process holds."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 (processes send no events)
            await asyncio.sleep(0.02)


async def until_phase(backend: EngineBackend, instance_id: str, phase: Phase) -> None:
    """Wait until an instance is in this phase and has no process."""
    async with asyncio.timeout(30):
        found = await look(backend, instance_id)
        while found.running or found.phase is not phase:
            await asyncio.sleep(0.02)
            found = await look(backend, instance_id)


def backend_of(client: XmlRpcClient, *names: str, local: bool = True) -> SupervisorBackend:
    """Return a backend for these programs."""
    return SupervisorBackend(client, instances_of(*names), 60.0, local=local)


async def test_good_settings_are_accepted(supervisord: Supervisord, client: XmlRpcClient) -> None:
    """The configuration in the documentation works."""
    supervisord.start({"good": f"{supervisord.command()}\n{GOOD}"})
    await backend_of(client, "good").verify()


async def test_settings_that_break_promises_are_named(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """The operator reads program and setting, for all of them at once."""
    command = supervisord.command()
    supervisord.start({"bad": f"{command}\nautostart=false\nstopwaitsecs=10\nstopsignal=KILL"})
    with pytest.raises(SettingsError) as caught:
        await backend_of(client, "bad", "absent").verify()
    text = str(caught.value)
    for part in ("'bad'", "killasgroup", "stopwaitsecs is 10", "stopsignal", "'absent'"):
        assert part in text


async def test_a_program_in_a_group_has_both_names(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """Groups are how supervisor numbers copies."""
    command = supervisord.command()
    supervisord.start(
        {"a": f"{command}\n{QUICK}", "b": f"{command}\n{QUICK}"},
        extra="[group:engines]\nprograms=a,b",
    )
    instance = Instance(instance_id="e", base_url="http://127.0.0.1:1", program="engines:a")
    backend = SupervisorBackend(client, {"e": instance}, 60.0, local=True)
    await backend.verify()
    await backend.start(instance)
    assert (await look(backend, "e")).running
    assert await backend.stop(instance, None, 10.0) is Ending.LEFT


async def test_a_stop_right_after_the_start_is_heard(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """Before a fork has become its program, supervisord's own handlers would swallow SIGTERM."""
    supervisord.slow_forks(1.0)
    supervisord.start({"e": f"{supervisord.command()}\n{QUICK}"})
    backend, instance = backend_of(client, "e"), instances_of("e")["e"]
    await backend.start(instance)
    assert await backend.stop(instance, None, 10.0) is Ending.LEFT


async def test_a_wrong_password_names_the_settings(supervisord: Supervisord) -> None:
    """It is no passing fault."""
    supervisord.start({})
    async with XmlRpcClient(supervisord.url, USER, "wrong", 5.0) as client:
        with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_SUPERVISOR_PASSWORD"):
            await client.call("supervisor.getState")


async def test_tries_of_supervisor_itself_end_as_failed(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """A program that dies at once is started again by supervisor, and given up."""
    supervisord.start(
        {"dying": f"{supervisord.command('--exit-code', '3')}\n{GOOD}\nstartretries=1"}
    )
    backend = backend_of(client, "dying")
    await backend.start(instances_of("dying")["dying"])
    await until_phase(backend, "dying", Phase.FAILED)


async def test_a_stop_ends_the_tries_of_supervisor(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """A drained instance must not come back by itself."""
    supervisord.start(
        {"dying": f"{supervisord.command('--exit-code', '3')}\n{GOOD}\nstartretries=100"}
    )
    backend = backend_of(client, "dying")
    instance = instances_of("dying")["dying"]
    await backend.start(instance)
    await until_phase(backend, "dying", Phase.STARTING)
    await backend.stop(instance, None, 1.0)
    assert (await look(backend, "dying")).phase is Phase.STOPPED


async def test_elsewhere_supervisor_escalates_by_itself(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """Without a view of the processes the kill comes after stopwaitsecs, to the group."""
    good = GOOD.replace("stopwaitsecs=60", "stopwaitsecs=1")
    supervisord.start(
        {"far": f"{supervisord.command('--ignore-sigterm', '--worker')}\n{good}\nstartsecs=0"}
    )
    backend = backend_of(client, "far", local=False)
    await backend.start(instances_of("far")["far"])
    life_id = (await look(backend, "far")).life_id
    group = pid_of(life_id)
    assert group is not None
    await until_members(group, 2)
    begun = time.monotonic()
    assert await backend.stop(instances_of("far")["far"], life_id, 0.0) is Ending.KILLED
    assert time.monotonic() - begun >= 0.9
    assert living_members(group) == ()
