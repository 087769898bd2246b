"""The ordered steps that answer each command, as a table, and the loop that runs them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar
from xmlrpc.client import Fault

from gatemesh_common.clock import Clock
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import Action, StepName
from gatemesh_common.metrics import RETRIED
from gatemesh_common.publisher import is_told_to_end
from gatemesh_common.trace import trace_id_of
from gatemesh_executor.core_dump import dump_core
from gatemesh_executor.drain import confirm_out, end_life, put_back, take_out
from gatemesh_executor.jobs import Job, Step, Tools
from gatemesh_executor.pace import Pace
from gatemesh_executor.repair import check_weights, note_checksums, reload_weights, reset_cache
from gatemesh_executor.replace import (
    clear_old,
    hold_folder,
    pull_weights,
    scan_weights,
    swap_weights,
    verify_weights,
)
from gatemesh_executor.restart import await_ready, start_life
from gatemesh_executor.roll_back import roll_back

log = logging.getLogger(__name__)

PLAYBOOKS: Mapping[Action, tuple[Step, ...]] = {
    Action.DRAIN: (take_out, confirm_out, end_life),
    Action.EJECT: (take_out, confirm_out),
    Action.RESTART: (dump_core, end_life, start_life, await_ready),
    Action.READMIT: (put_back, note_checksums),
    Action.REPAIR: (check_weights, reload_weights, reset_cache),
    Action.ROLL_BACK: (roll_back, end_life, start_life, await_ready),
    Action.REPLACE: (
        end_life,
        pull_weights,
        verify_weights,
        scan_weights,
        swap_weights,
        start_life,
        await_ready,
        clear_old,
    ),
}

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 2.0
LAST_TRY = timedelta(seconds=3)
"""So long before the expiry a step is tried last: after it the manager waits for no report."""
LEAST_PATIENCE = timedelta(seconds=5)
"""An outage this short never fails a command, however near its expiry."""

T = TypeVar("T")


class StepBrokeError(GatemeshError):
    """A step met a fault that nobody foresaw; names the step and the fault, and no secret."""


class Journal(Protocol):
    """Told about each finished step."""

    def note(self, step: StepName, duration_s: float) -> None:
        """Record that a step took so many seconds."""


async def run_playbook(tools: Tools, job: Job, journal: Journal, clock: Clock) -> None:
    """Take every step in order, each as often as a passing fault demands.

    Raises:
        GatemeshError: a step failed for good, or its fault outlasted the command's expiry.
    """
    async with hold_folder(tools, job):
        for step in PLAYBOOKS[job.command.action]:
            with told_as_broken(step.__name__, job):
                await take_step(step, tools, job, journal, clock)


async def take_step(step: Step, tools: Tools, job: Job, journal: Journal, clock: Clock) -> None:
    """Take one step, and tell of it."""
    begun = tools.pace.now()
    name = await patiently(partial(step, tools, job), job, clock, tools.pace)
    if name is not None:
        journal.note(name, tools.pace.now() - begun)


@contextmanager
def told_as_broken(step: str, job: Job) -> Iterator[None]:
    """Turn what nobody foresaw into a failure that can be reported.

    Raises:
        StepBrokeError: in its place; the log has the rest.
        CancelledError: the command was let go meanwhile; it is delivered again.
    """
    try:
        yield
    except GatemeshError:
        raise
    except Exception as error:
        facts = {
            "step": step,
            "instance_id": job.instance.instance_id,
            "incident_id": job.command.incident_id,
            "command_id": job.command.message_id,
            "trace_id": trace_id_of(job.command.traceparent),
        }
        log.exception("step_broke", extra=facts)
        if is_told_to_end():
            # What breaks while it is cleared away says nothing about the engine.
            raise asyncio.CancelledError from error
        raise StepBrokeError(f"{step}: {fault_words(error)}") from error


def fault_words(error: Exception) -> str:
    """Name a fault by its kind; its own text, which may hold anything, only where it is known."""
    kind = type(error).__name__
    if isinstance(error, Fault):
        return f"{kind} {error.faultCode}: {error.faultString}"
    if isinstance(error, OSError) and error.strerror:
        about = f"{error.filename}: " if error.filename else ""
        return f"{kind}: {about}{error.strerror}"
    return f"{kind}; the executor's log says more"


async def patiently(operation: Callable[[], Awaitable[T]], job: Job, clock: Clock, pace: Pace) -> T:
    """Repeat while it fails for a passing reason and a report still comes in time."""
    delay_s = FIRST_DELAY_S
    give_up_at = None
    while True:
        try:
            return await operation()
        except GatemeshError as error:
            give_up_at = give_up_at or last_moment(job, clock())
            left_s = (give_up_at - clock()).total_seconds()
            if not error.retryable or left_s <= 0:
                raise
            RETRIED.labels(error=type(error).__name__).inc()
        await pace.sleep(min(delay_s, left_s))
        delay_s = min(delay_s * 2, LONGEST_DELAY_S)


def last_moment(job: Job, now: datetime) -> datetime:
    """Return when a step that begins to fail now is tried last."""
    return max(job.command.expires_at - LAST_TRY, now + LEAST_PATIENCE)
