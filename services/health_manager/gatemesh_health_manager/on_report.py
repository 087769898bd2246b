"""What the end of a command does, whether the executor reported it or time ran out."""

from datetime import timedelta

from gatemesh_common.messages import Action, CommandReport, InstanceState, ReportOutcome
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.record import Playbook
from gatemesh_health_manager.states import UNATTENDED, Trigger


def on_report(case: Case, report: CommandReport) -> None:
    """Note what the executor knows; go on if it is the report that was waited for."""
    note_fence(case, report)
    note_life(case, report)
    flight = case.record.flight
    if flight is None or flight.command_id != report.command_id:
        return
    case.end_flight(report.outcome, report.reason)
    succeeded = report.outcome is ReportOutcome.SUCCEEDED
    after_command(case, report.action, succeeded=succeeded, why=report.reason)


def note_fence(case: Case, report: CommandReport) -> None:
    """Catch up with an executor that has obeyed higher fences, as after a restored database."""
    if report.highest_fence is not None and report.highest_fence > case.record.fence:
        case.change(fence=report.highest_fence)


def note_life(case: Case, report: CommandReport) -> None:
    """Take over what a report says about the life that runs.

    Where a new life means something, the observation tells of it: a report puts none into rotation.
    """
    if case.record.state not in UNATTENDED or not case.is_news(report.timestamp):
        return
    if report.life_id is not None and report.life_id != case.record.life_id:
        case.new_life(report.life_id)
    elif report.life_id is not None:
        case.change(running=True)


def after_command(case: Case, action: Action, *, succeeded: bool, why: str) -> None:
    """Take the step that follows a command which ended; in any other state it changes nothing."""
    state = case.record.state
    if action is Action.DRAIN and state is InstanceState.DRAINING:
        after_drain(case, succeeded=succeeded, why=why)
    elif action is Action.RESTART and state is InstanceState.RESTARTING:
        after_restart(case, succeeded=succeeded, why=why)
    elif action is Action.READMIT and case.record.serving and not succeeded:
        case.change(due_at=case.after(case.policy.limits.command_timeout_s))


def after_drain(case: Case, *, succeeded: bool, why: str) -> None:
    """Restart, or stay away; a drain that failed is followed by a restart that stops by force."""
    incident = case.record.incident
    if incident is not None and incident.playbook is Playbook.STOP:
        case.move(Trigger.STOPPED)
        case.set_incident(
            "quarantined", "stopped on request" if succeeded else f"not stopped: {why}"
        )
        return
    case.move(Trigger.DRAINED)
    case.restart()


def after_restart(case: Case, *, succeeded: bool, why: str) -> None:
    """Let probes decide about the new life; without one, try again within the budget."""
    record = case.record
    # Observed meanwhile, the new life may have ended again.
    if succeeded and record.running and record.life_id != record.target_life:
        case.enter_probation(Trigger.STARTED)
        return
    if record.life_id != record.target_life:
        # A new life came up and did not become ready: the next restart is about that one.
        case.change(target_life=record.life_id)
    case.set_incident("open", f"restart failed: {why}" if why else "restart failed")
    case.move(Trigger.RETRIED)
    case.restart()


def on_overdue_command(case: Case) -> None:
    """Go on without the report that did not come in time."""
    flight = case.record.flight
    if flight is None:
        return
    case.end_flight("expired", "no report in time")
    if flight.action is Action.RESTART and executor_is_silent(case):
        # Nobody tried: the order is repeated and not counted; the incident's age bounds it.
        if case.record.state is InstanceState.RESTARTING:
            case.want(Action.RESTART)
        return
    after_command(case, flight.action, succeeded=False, why="no report in time")


def executor_is_silent(case: Case) -> bool:
    """True when the executor has not been heard about this instance for a while."""
    seen_at = case.record.observed_at
    limit = timedelta(seconds=case.policy.limits.executor_silent_s)
    return seen_at is None or case.now - seen_at > limit
