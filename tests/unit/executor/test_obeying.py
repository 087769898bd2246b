"""Commands from their arrival to their report."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from xmlrpc.client import Fault

import pytest
from prometheus_client import REGISTRY
from tests.spans import TRACE, Recorder

from gatemesh_common.errors import BrokerUnavailableError, GatemeshError, UnroutableError
from gatemesh_common.messages import (
    CommandReport,
    DrainInstance,
    EjectInstance,
    RepairInstance,
    ReplaceInstance,
    ReportOutcome,
    RestartInstance,
    StepFinished,
)
from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Observation,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.health import Health
from gatemesh_executor.instances import Instance, Instances
from gatemesh_executor.obeying import Executor, failure_reason
from gatemesh_executor.playbooks import StepBrokeError
from gatemesh_executor.repair import CacheInUseError, LifeGoneError
from gatemesh_executor.repairing import RepairFailedError, RepairNotOfferedError
from gatemesh_executor.restart import StartTimeoutError
from gatemesh_executor.weights.folders import DiskFullError, FolderFailedError
from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.pull import PullFailedError

from .conftest import INSTANCES, START, Time, World


@pytest.fixture
def executor(world: World) -> Executor:
    """Give an executor in that world."""
    return Executor(INSTANCES, world.tools, world.sender, world.time.clock)


def reports(world: World) -> list[CommandReport]:
    """Return the reports published so far."""
    return [message for message in world.sender.sent if isinstance(message, CommandReport)]


async def test_a_command_ends_with_its_report(world: World, executor: Executor) -> None:
    """After all of its steps, so that the ack loses none."""
    command = world.command(
        RestartInstance, life_id=await world.start(), incident_id="i-1", traceparent="t"
    )
    await executor.obey(command)
    *steps, report = world.sender.sent
    assert [step.step for step in steps if isinstance(step, StepFinished)] == [
        "stopped",
        "started",
        "ready",
    ]
    assert isinstance(report, CommandReport)
    assert report.outcome is ReportOutcome.SUCCEEDED
    assert (report.life_id, report.incident_id, report.traceparent) == ("life-2", "i-1", "t")


async def test_the_time_of_a_command_is_counted(world: World, executor: Executor) -> None:
    """By action and outcome; it is the time that the report tells."""
    labels = {"action": "restart", "outcome": "succeeded"}
    names = [f"gatemesh_executor_command_seconds_{part}" for part in ("count", "sum")]
    before = [REGISTRY.get_sample_value(name, labels) or 0 for name in names]
    await executor.obey(world.command(RestartInstance, life_id=await world.start()))
    after = [REGISTRY.get_sample_value(name, labels) or 0 for name in names]
    [report] = reports(world)
    assert after[0] - before[0] == 1
    assert after[1] - before[1] == pytest.approx(report.duration_s)
    assert REGISTRY.get_sample_value("gatemesh_executor_under_way") == 0


async def test_the_steps_of_a_command_lie_in_the_trace_of_its_verdict(world: World) -> None:
    """A person sees which request had the engine restarted, and what took how long."""
    recorder = Recorder()
    spans = recorder.spans("executor")
    executor = Executor(INSTANCES, world.tools, world.sender, world.time.clock, spans=spans)
    life = await world.start()
    await executor.obey(world.command(RestartInstance, life_id=life, traceparent=TRACE))
    whole = recorder.named("command restart")
    assert (whole.trace_id, whole.parent_id) == (TRACE[3:35], TRACE[36:52])
    steps = [one for one in recorder.told if one.name.startswith("step ")]
    assert [one.name for one in steps] == ["step stopped", "step started", "step ready"]
    assert {(one.trace_id, one.parent_id) for one in steps} == {(whole.trace_id, whole.span_id)}
    attributes = dict(recorder.ended[-1].attributes or {})
    assert attributes["gatemesh.outcome"] == "succeeded"
    assert attributes["gatemesh.instance_id"] == "engine-0"


async def test_logs_name_the_trace_and_the_command(
    world: World, executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    """So that a line leads to the request that caused it."""
    caplog.set_level("INFO")
    command = world.command(RestartInstance, life_id=await world.start(), traceparent=TRACE)
    await executor.obey(command)
    lines = [vars(one) for one in caplog.records if one.msg in ("step_finished", "command_ended")]
    assert len(lines) == 4
    assert {line["trace_id"] for line in lines} == {TRACE[3:35]}
    assert {line["command_id"] for line in lines} == {command.message_id}


async def test_a_redelivered_command_repeats_its_messages(world: World, executor: Executor) -> None:
    """After a crash; the inbox of the manager drops the copies by their ids."""
    command = world.command(EjectInstance)
    await executor.obey(command)
    first = [message.message_id for message in world.sender.sent]
    await Executor(INSTANCES, world.tools, world.sender, world.time.clock).obey(command)
    assert [message.message_id for message in world.sender.sent] == first * 2
    assert len(set(first)) == len(first)


async def test_a_copy_of_a_command_that_has_ended_is_refused(
    world: World, executor: Executor
) -> None:
    """It ends nothing, and its report is not taken for the first one."""
    command = world.command(EjectInstance)
    for _ in range(3):
        await executor.obey(command)
    own, *copies = reports(world)
    assert (own.outcome, own.ends_command) == (ReportOutcome.SUCCEEDED, True)
    assert {(it.outcome, it.reason, it.ends_command) for it in copies} == {
        (ReportOutcome.REFUSED, "duplicate", False)
    }
    assert {it.command_id for it in copies} == {command.message_id}
    assert len({it.message_id for it in (own, *copies)}) == 3


async def test_a_copy_goes_on_where_the_first_was_cut_short(
    world: World, executor: Executor
) -> None:
    """Only an end that was told counts as one."""
    command = world.command(EjectInstance)
    world.sender.faults = [UnroutableError("x", key) for key in ("step.v1", "step.v1", "report.v1")]
    with pytest.raises(UnroutableError):
        await executor.obey(command)
    await executor.obey(command)
    assert [it.outcome for it in reports(world)] == [ReportOutcome.SUCCEEDED]


async def test_a_forgery_is_reported_and_touches_nothing(world: World, executor: Executor) -> None:
    """Neither the engine, nor the fence, nor the command whose id it bears."""
    real = world.command(EjectInstance, fence=2)
    forged = world.command(DrainInstance, message_id=real.message_id, fence=9)
    await executor.refuse(forged, "unsigned")
    [report] = reports(world)
    assert (report.outcome, report.reason) == (ReportOutcome.REFUSED, "unsigned")
    assert not report.ends_command
    assert len(world.sender.sent) == 1
    await executor.obey(real)
    assert reports(world)[-1].outcome is ReportOutcome.SUCCEEDED
    assert reports(world)[-1].message_id != report.message_id


async def test_refusals_are_counted_by_reason(world: World, executor: Executor) -> None:
    """An alarm needs no log; details make no series of their own."""
    for key in ("a", "b"):
        await executor.refuse(world.command(EjectInstance), f"unknown_key: {key!r}")
    metric = REGISTRY.get_sample_value(
        "gatemesh_executor_commands_refused_total", {"reason": "unknown_key"}
    )
    assert metric is not None
    assert metric >= 2


async def test_a_stale_fence_is_refused(world: World, executor: Executor) -> None:
    """An older order never undoes a newer one."""
    old, new = world.command(EjectInstance, fence=4), world.command(EjectInstance, fence=5)
    await executor.obey(new)
    await executor.obey(old)
    last = reports(world)[-1]
    assert (last.outcome, last.reason) == (ReportOutcome.REFUSED, "stale_fence")
    assert (last.highest_fence, last.ends_command) == (5, True)


async def test_a_refused_command_does_not_raise_the_fence(world: World, executor: Executor) -> None:
    """An expired one with a high number blocks nothing."""
    expired = world.command(EjectInstance, fence=9, expires_at=world.time.clock())
    await executor.obey(expired)
    await executor.obey(world.command(EjectInstance, fence=2))
    assert [it.outcome for it in reports(world)] == [
        ReportOutcome.REFUSED,
        ReportOutcome.SUCCEEDED,
    ]


async def test_an_unknown_instance_is_refused(world: World, executor: Executor) -> None:
    """Somebody else's instance, or a typing error."""
    await executor.obey(world.command(EjectInstance, instance_id="engine-9"))
    assert reports(world)[0].reason == "unknown_instance"


async def test_a_failure_is_reported_with_its_reason(world: World, executor: Executor) -> None:
    """The restart budget counts it."""
    world.backend.behave("engine-0", fails_to_start=True)
    await executor.obey(world.command(RestartInstance))
    [report] = reports(world)
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason.startswith("start_failed: ")


async def test_a_success_tells_its_notes(world: World, executor: Executor) -> None:
    """What was left out, for want of settings, is not passed over in silence."""
    await executor.obey(world.command(ReplaceInstance))
    [report] = reports(world)
    assert report.outcome is ReportOutcome.SUCCEEDED
    assert report.reason == "no weights configured, cold start only"


async def test_a_repair_that_is_not_offered_is_reported(world: World, executor: Executor) -> None:
    """The manager goes on to a restart."""
    world.repair.offered = False
    await executor.obey(world.command(RepairInstance, life_id=await world.start()))
    [report] = reports(world)
    assert (report.outcome, report.reason) == (ReportOutcome.FAILED, "repair_not_offered: 404")
    assert report.life_id == "life-1"


async def test_a_kill_is_reported(world: World, executor: Executor) -> None:
    """Requests were cut; the operator sees it."""
    life_id = await world.start()
    world.backend.behave("engine-0", drain_s=float("inf"))
    await executor.obey(world.command(DrainInstance, life_id=life_id))
    assert reports(world)[0].killed


async def test_a_broker_that_is_away_holds_up_no_stop(world: World, executor: Executor) -> None:
    """Steps are published beside the work, the report until it is there."""
    life_id = await world.start()
    world.sender.faults = [BrokerUnavailableError("away")] * 3
    await executor.obey(world.command(DrainInstance, life_id=life_id))
    assert {message.message_id for message in world.sender.sent}
    assert reports(world)[0].outcome is ReportOutcome.SUCCEEDED
    assert len(world.sender.sent) == 4


async def test_a_step_that_the_broker_refuses_for_good_is_let_go(
    world: World, executor: Executor
) -> None:
    """The report matters more."""
    world.sender.faults = [UnroutableError("x", "step.v1")]
    await executor.obey(world.command(EjectInstance))
    assert len(reports(world)) == 1


async def test_commands_of_one_instance_wait_for_each_other(
    world: World, executor: Executor
) -> None:
    """Two hands on one process would undo each other."""
    await world.start()
    gate = asyncio.Event()
    world.health.look = hold(gate)  # type: ignore[method-assign]
    slow = asyncio.create_task(executor.obey(world.command(DrainInstance, fence=1)))
    next_one = asyncio.create_task(executor.obey(world.command(EjectInstance, fence=2)))
    other = world.command(EjectInstance, instance_id="engine-1")
    await executor.obey(other)
    assert [report.command_id for report in reports(world)] == [other.message_id]
    gate.set()
    await asyncio.gather(slow, next_one)
    assert [report.action for report in reports(world)] == ["eject", "drain", "eject"]


async def test_abandoned_commands_are_not_reported(world: World, executor: Executor) -> None:
    """Unacknowledged, they are delivered again."""
    await world.start()
    world.health.look = hold(asyncio.Event())  # type: ignore[method-assign]
    task = asyncio.create_task(executor.obey(world.command(DrainInstance)))
    await asyncio.sleep(0)
    executor.abandon()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reports(world) == []


async def test_a_platform_away_at_the_end_leaves_the_life_open(
    world: World, executor: Executor
) -> None:
    """The report does not claim what nobody saw."""
    await world.start()
    world.backend.down = True
    await executor.obey(world.command(EjectInstance))
    [report] = reports(world)
    assert (report.outcome, report.life_id) == (ReportOutcome.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (StartTimeoutError("x"), "start_timeout"),
        (StartFailedError("x"), "start_failed"),
        (StopFailedError("x"), "stop_failed"),
        (BackendUnavailableError("x"), "backend_unavailable"),
        (WeightsRefusedError("x"), "weights_refused"),
        (PullFailedError("x"), "pull_failed"),
        (DiskFullError("x"), "disk_full"),
        (FolderFailedError("x"), "folder_failed"),
        (RepairNotOfferedError("x"), "repair_not_offered"),
        (RepairFailedError("x"), "repair_failed"),
        (CacheInUseError("x"), "cache_in_use"),
        (LifeGoneError("x"), "life_gone"),
        (StepBrokeError("x"), "step_broke"),
        (BrokerUnavailableError("x"), "failed"),
    ],
)
def test_failures_have_words(error: GatemeshError, word: str) -> None:
    """A closed list in front, detail behind it."""
    assert failure_reason(error) == f"{word}: x"


def hold(gate: asyncio.Event):  # type: ignore[no-untyped-def]
    """Return a look at an engine that waits for the gate."""

    async def look(base_url: str) -> Health:
        await gate.wait()
        return Health.READY

    return look


async def test_a_report_is_as_old_as_its_look_at_the_life(world: World) -> None:
    """A look that takes long must not pass for newer than an observation made meanwhile."""
    slow = SlowBackend(INSTANCES, world.time)
    executor = Executor(
        INSTANCES, replace(world.tools, backend=slow), world.sender, world.time.clock
    )
    await executor.obey(world.command(EjectInstance))
    [report] = reports(world)
    assert report.timestamp == START


class SlowBackend(FakeBackend):
    """Takes a minute to answer a look."""

    def __init__(self, instances: Instances, time: Time) -> None:
        super().__init__(instances, time.clock)
        self._time = time

    async def observe_all(self) -> Mapping[str, Observation]:
        """Answer late."""
        found = await super().observe_all()
        self._time.elapsed_s += 60
        return found


class FaultyBackend(FakeBackend):
    """Answers starts, and looks that follow one, with a fault that nobody foresaw."""

    broken = False

    async def observe_all(self) -> Mapping[str, Observation]:
        """Fail once it is broken."""
        if self.broken:
            raise Fault(1, "UNKNOWN_METHOD")
        return await super().observe_all()

    async def start(self, instance: Instance) -> None:
        """Fail."""
        self.broken = True
        raise Fault(10, f"BAD_NAME: {instance.program}")


async def test_a_step_that_breaks_is_reported(world: World) -> None:
    """By step and fault, even where the look at the life breaks as well."""
    faulty = FaultyBackend(INSTANCES, world.time.clock)
    tools = replace(world.tools, backend=faulty)
    executor = Executor(INSTANCES, tools, world.sender, world.time.clock)
    command = world.command(RestartInstance)
    await executor.obey(command)
    [report] = reports(world)
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason == "step_broke: start_life: Fault 10: BAD_NAME: engine-0"
    assert (report.life_id, report.ends_command) == (None, True)
    await executor.obey(command)
    assert reports(world)[-1].reason == "duplicate"
