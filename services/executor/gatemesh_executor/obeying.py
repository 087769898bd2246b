"""Carrying out commands: serial per instance, side by side across instances, each reported."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from gatemesh_common.clock import Clock
from gatemesh_common.consuming import retry_passing_faults
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import (
    AnyCommand,
    CommandReport,
    Message,
    ReportOutcome,
    StepFinished,
    StepName,
    derived_id,
    new_message_id,
)
from gatemesh_common.spans import NO_SPANS, Attributes, Spans
from gatemesh_common.trace import trace_id_of
from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    RollBackFailedError,
    RollBackNotOfferedError,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.backends.kubernetes.api import EvictionRefusedError
from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    StillOutError,
)
from gatemesh_executor.instances import Instances
from gatemesh_executor.jobs import Job, Tools, observe
from gatemesh_executor.metrics import (
    COMMAND_SECONDS,
    COMMANDS_ENDED,
    COMMANDS_REFUSED,
    STEP_SECONDS,
    UNDER_WAY,
)
from gatemesh_executor.playbooks import PLAYBOOKS, StepBrokeError, run_playbook
from gatemesh_executor.refuse import NOTHING_OBEYED, Obeyed, Refusal, refusal
from gatemesh_executor.repair import CacheInUseError, LifeGoneError
from gatemesh_executor.repairing import RepairFailedError, RepairNotOfferedError
from gatemesh_executor.restart import StartTimeoutError
from gatemesh_executor.weights.folders import DiskFullError, FolderFailedError
from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.pull import PullFailedError

log = logging.getLogger(__name__)

FAILURES: tuple[tuple[type[GatemeshError], str], ...] = (
    (StartTimeoutError, "start_timeout"),
    (StartFailedError, "start_failed"),
    (StopFailedError, "stop_failed"),
    (EvictionRefusedError, "eviction_refused"),
    (BackendUnavailableError, "backend_unavailable"),
    (WeightsRefusedError, "weights_refused"),
    (PullFailedError, "pull_failed"),
    (DiskFullError, "disk_full"),
    (FolderFailedError, "folder_failed"),
    (RollBackNotOfferedError, "roll_back_not_offered"),
    (RollBackFailedError, "roll_back_failed"),
    (RepairNotOfferedError, "repair_not_offered"),
    (RepairFailedError, "repair_failed"),
    (CacheInUseError, "cache_in_use"),
    (LifeGoneError, "life_gone"),
    (BalancerUnavailableError, "balancer_unavailable"),
    (BalancerRefusedError, "balancer_refused"),
    (StillOutError, "still_out"),
    (StepBrokeError, "step_broke"),
)


class Sender(Protocol):
    """Publishes messages with confirmation."""

    async def publish(self, message: Message) -> None:
        """Return once the broker has it; raises a retryable error while it is away."""


def failure_reason(error: GatemeshError) -> str:
    """Return the closed-list word for a failure, then its detail."""
    for kind, word in FAILURES:
        if isinstance(error, kind):
            return f"{word}: {error}"[:500]
    return f"failed: {error}"[:500]


def step_message(command: AnyCommand, step: StepName, duration_s: float, clock: Clock) -> Message:
    """Return the message of one step; the same step of a redelivered command has the same id."""
    return StepFinished(
        message_id=derived_id(command.message_id, step),
        timestamp=clock(),
        traceparent=command.traceparent,
        instance_id=command.instance_id,
        pool=command.pool,
        command_id=command.message_id,
        incident_id=command.incident_id,
        incarnation=command.incarnation,
        step=step,
        duration_s=duration_s,
    )


def report_message(
    command: AnyCommand, seen_at: datetime, outcome: ReportOutcome, **facts: Any
) -> CommandReport:
    """Return the report of a command; its life is the one that ran at the moment of the report.

    A redelivered command has the same one.
    """
    return CommandReport(
        message_id=derived_id(command.message_id, "report"),
        timestamp=seen_at,
        traceparent=command.traceparent,
        instance_id=command.instance_id,
        pool=command.pool,
        command_id=command.message_id,
        action=command.action,
        incarnation=command.incarnation,
        fence=command.fence,
        incident_id=command.incident_id,
        outcome=outcome,
        **facts,
    )


def refusal_message(
    command: AnyCommand, seen_at: datetime, reason: str, *, ends_command: bool, **facts: Any
) -> CommandReport:
    """Return the report of a refusal, each with an id of its own.

    With the one that the command's own report has, a copy would keep that from being read, and a
    copy that comes after it would be seen nowhere.
    """
    report = report_message(
        command,
        seen_at,
        ReportOutcome.REFUSED,
        reason=reason,
        ends_command=ends_command,
        **facts,
    )
    return report.model_copy(update={"message_id": new_message_id()})


def facts_of(command: AnyCommand) -> Attributes:
    """Return what to look a command up by in a trace."""
    return {
        "gatemesh.instance_id": command.instance_id,
        "gatemesh.pool": command.pool,
        "gatemesh.command_id": command.message_id,
        "gatemesh.incident_id": command.incident_id or "",
        "gatemesh.fence": command.fence,
    }


class StepJournal:
    """Publishes steps beside the work: a broker that is away does not hold up a kill."""

    def __init__(
        self, command: AnyCommand, sender: Sender, clock: Clock, spans: Spans = NO_SPANS
    ) -> None:
        self._command = command
        self._sender = sender
        self._clock = clock
        self._spans = spans
        self._span = spans.begin(
            f"command {command.action}", command.traceparent, facts_of(command)
        )
        self._sending: list[asyncio.Task[None]] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Begin to publish a step."""
        log.info(
            "step_finished",
            extra={
                "step": step,
                "instance_id": self._command.instance_id,
                "incident_id": self._command.incident_id,
                "command_id": self._command.message_id,
                "trace_id": trace_id_of(self._command.traceparent),
                "duration_s": round(duration_s, 3),
            },
        )
        STEP_SECONDS.labels(step=step).observe(duration_s)
        ended, parent = self._clock(), self._span.traceparent
        self._spans.past(
            f"step {step}",
            parent,
            ended - timedelta(seconds=duration_s),
            ended,
            facts_of(self._command),
        )
        message = step_message(self._command, step, duration_s, self._clock)
        self._sending.append(
            asyncio.create_task(retry_passing_faults(lambda: self._sender.publish(message)))
        )

    def end(self, outcome: ReportOutcome, reason: str) -> None:
        """Say how the command ended."""
        self._span.end(outcome=outcome.value, reason=reason)

    async def settle(self) -> None:
        """Return when every step is published; one that the broker refuses for good is logged."""
        for outcome in await asyncio.gather(*self._sending, return_exceptions=True):
            if isinstance(outcome, GatemeshError):
                log.error("step_not_published", extra={"error": str(outcome)})
            elif isinstance(outcome, BaseException):
                raise outcome


class Executor:
    """Obeys commands. Every one of them ends with a report, which the caller may acknowledge."""

    def __init__(
        self,
        instances: Instances,
        tools: Tools,
        sender: Sender,
        clock: Clock,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._instances = instances
        self._spans = spans
        self._tools = tools
        self._sender = sender
        self._clock = clock
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._obeyed: defaultdict[str, Obeyed] = defaultdict(lambda: NOTHING_OBEYED)
        self._at_work: set[asyncio.Task[Any]] = set()

    async def obey(self, command: AnyCommand) -> None:
        """Carry out or refuse a command; returns when its report is published."""
        if command.instance_id not in self._instances:
            await self._send(self._refused(command, Refusal.UNKNOWN_INSTANCE))
            return
        with self._counted():
            async with self._locks[command.instance_id]:
                await self._end(command, await self._answer(command))

    async def refuse(self, command: AnyCommand, reason: str) -> None:
        """Report a command that nobody proved to have sent; returns when that is published.

        Whatever command has its id goes on: anybody can use an id.
        """
        log.warning(
            "command_not_trusted",
            extra={"instance_id": command.instance_id, "reason": reason},
        )
        report = refusal_message(command, self._clock(), reason, ends_command=False)
        await self._send(report)

    def abandon(self) -> None:
        """Let go of the commands under way; unacknowledged, they are delivered again."""
        for task in self._at_work:
            task.cancel()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        task = asyncio.current_task()
        if task is not None:
            self._at_work.add(task)
        try:
            with UNDER_WAY.track_inprogress():
                yield
        finally:
            self._at_work.discard(task)

    async def _answer(self, command: AnyCommand) -> CommandReport:
        obeyed = self._obeyed[command.instance_id]
        refused = refusal(command, self._instances, PLAYBOOKS.keys(), obeyed, self._clock())
        if refused is not None:
            return self._refused(command, refused)
        self._obeyed[command.instance_id] = Obeyed(command.fence)
        return await self._carry_out(command)

    async def _end(self, command: AnyCommand, report: CommandReport) -> None:
        await self._send(report)
        if report.outcome is not ReportOutcome.REFUSED:
            obeyed = self._obeyed[command.instance_id]
            self._obeyed[command.instance_id] = replace(obeyed, ended_id=command.message_id)

    async def _carry_out(self, command: AnyCommand) -> CommandReport:
        job = Job(command, self._instances[command.instance_id])
        journal = StepJournal(command, self._sender, self._clock, self._spans)
        begun = self._tools.pace.now()
        outcome = ReportOutcome.SUCCEEDED
        try:
            await run_playbook(self._tools, job, journal, self._clock)
        except GatemeshError as error:
            outcome, reason = ReportOutcome.FAILED, failure_reason(error)
        else:
            reason = "; ".join(job.notes)[:500]
        journal.end(outcome, reason)
        await journal.settle()
        seen_at, took_s = self._clock(), self._tools.pace.now() - begun
        COMMAND_SECONDS.labels(action=command.action, outcome=outcome).observe(took_s)
        return report_message(
            command,
            seen_at,
            outcome,
            reason=reason,
            life_id=await self._present_life(job),
            killed=job.killed,
            core_dump=job.core_dump,
            duration_s=took_s,
        )

    async def _present_life(self, job: Job) -> str | None:
        try:
            return (await observe(self._tools, job.instance)).life_id
        except BackendUnavailableError:
            return None
        except Exception:
            # The report matters more, and what broke the step may well break the look.
            log.exception("life_not_seen", extra={"instance_id": job.instance.instance_id})
            return None

    def _refused(self, command: AnyCommand, why: Refusal) -> CommandReport:
        obeyed = self._obeyed.get(command.instance_id)
        return refusal_message(
            command,
            self._clock(),
            why.value,
            ends_command=why is not Refusal.DUPLICATE,
            highest_fence=obeyed.fence if obeyed and obeyed.fence else None,
        )

    async def _send(self, report: CommandReport) -> None:
        log.info(
            "command_ended",
            extra={
                "action": report.action,
                "instance_id": report.instance_id,
                "incident_id": report.incident_id,
                "command_id": report.command_id,
                "trace_id": trace_id_of(report.traceparent),
                "outcome": report.outcome,
                "reason": report.reason,
            },
        )
        COMMANDS_ENDED.labels(action=report.action, outcome=report.outcome).inc()
        if report.outcome is ReportOutcome.REFUSED:
            COMMANDS_REFUSED.labels(reason=report.reason.partition(":")[0]).inc()
        await retry_passing_faults(lambda: self._sender.publish(report))
