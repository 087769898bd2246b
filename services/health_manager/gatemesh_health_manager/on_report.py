"""What the end of a command does, whether the executor reported it or time ran out."""

from collections.abc import Callable
from datetime import timedelta

from gatemesh_common.messages import Action, CommandReport, InstanceState, ReportOutcome
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.rolling_back import go_on_rolling_back
from gatemesh_health_manager.states import UNATTENDED, Trigger

WAITS_FOR = {
    InstanceState.RESTARTING: frozenset({Action.RESTART, Action.ROLL_BACK}),
    InstanceState.REPLACING: frozenset({Action.REPLACE}),
}
"""The commands whose reports these states wait for."""
STARTS = frozenset[Action]().union(*WAITS_FOR.values())
NOT_ISOLATED = {Action.DRAIN: "not drained", Action.EJECT: "not taken out"}
"""What the incident says when requests may have gone on reaching the instance."""
NOT_OFFERED = "wrong_action"
"""By this an executor of an earlier release says that it knows no such command."""


def on_report(case: Case, report: CommandReport) -> None:
    """Note what the executor knows; go on if it is the report that was waited for."""
    note_fence(case, report)
    note_life(case, report)
    flight = case.record.flight
    if flight is None or flight.command_id != report.command_id:
        return
    case.end_flight(report.outcome, report.reason)
    case.note_core_dump(report.core_dump)
    succeeded = report.outcome is ReportOutcome.SUCCEEDED
    after_command(case, report.action, succeeded=succeeded, why=report.reason)
    if case.is_to_be_rolled_back():
        go_on_rolling_back(case)


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
    """Take the step that follows a command which ended; in any other state it only tells."""
    if not succeeded and action in NOT_ISOLATED:
        tell(case, f"{NOT_ISOLATED[action]}: {why}")
    state = case.record.state
    if action is Action.DRAIN and state is InstanceState.DRAINING:
        after_drain(case, succeeded=succeeded, why=why)
    elif action is Action.RESTART and state is InstanceState.RESTARTING:
        after_start(case, case.restart, succeeded=succeeded, why=why)
    elif action is Action.REPLACE and state is InstanceState.REPLACING:
        after_replace(case, succeeded=succeeded, why=why)
    elif action is Action.ROLL_BACK and state is InstanceState.RESTARTING:
        after_roll_back(case, succeeded=succeeded, why=why)
    elif state is InstanceState.EJECTED:
        after_ejected(case, action, succeeded=succeeded, why=why)
    elif action is Action.READMIT and case.record.serving and not succeeded:
        case.change(due_at=case.after(case.policy.limits.command_timeout_s))


def tell(case: Case, reason: str) -> None:
    """Let the incident that is being worked on say how it stands."""
    if case.record.incident is not None and case.record.incident.status == "open":
        case.set_incident("open", reason)


def after_drain(case: Case, *, succeeded: bool, why: str) -> None:
    """Restart, or stay away; a drain that failed is followed by a restart that stops by force."""
    if case.is_to_stay_away():
        ended = "stopped on request" if case.asked else "stopped"
        case.stay_away(ended if succeeded else f"not stopped: {why}")
        return
    if case.is_to_be_replaced():
        case.replace_from(case.record.incident.reason if case.record.incident else "")
        return
    case.move(Trigger.DRAINED)
    case.restart()


def after_ejected(case: Case, action: Action, *, succeeded: bool, why: str) -> None:
    """Mend what is out with nothing to confirm; let probes decide about a repaired life."""
    if action is Action.REPAIR:
        case.change(repaired_at=case.now)
        if succeeded:
            case.set_incident("open", "repaired in place")
            case.enter_probation(Trigger.REPAIRED)
        else:
            case.mend(f"repair failed: {why}")
    elif action is Action.EJECT and case.record.ticket is None and case.record.wanted is None:
        case.mend(case.record.incident.reason if case.record.incident else "")


def after_replace(case: Case, *, succeeded: bool, why: str) -> None:
    """Let probes decide about the replacement; where nothing is replaced, restart instead."""
    if not succeeded and why == NOT_OFFERED:
        case.set_incident("open", f"cannot be replaced: {why}")
        case.move(Trigger.NOT_OFFERED)
        case.restart()
    else:
        after_start(case, case.replace, succeeded=succeeded, why=why)


def after_roll_back(case: Case, *, succeeded: bool, why: str) -> None:
    """Let probes decide: about the former version's life, or the one that nobody has touched."""
    record = case.record
    if succeeded or not record.running or record.life_id != record.target_life:
        after_start(case, case.restart, succeeded=succeeded, why=why)
        return
    case.set_incident("expired", f"not rolled back: {why}")
    case.enter_probation(Trigger.SPARED)


def after_start(case: Case, again: Callable[[], None], *, succeeded: bool, why: str) -> None:
    """Let probes decide about the new life; without one, try again within the budget."""
    record = case.record
    # Observed meanwhile, the new life may have ended again.
    if succeeded and record.running and record.life_id != record.target_life:
        case.enter_probation(Trigger.STARTED)
        return
    if record.life_id != record.target_life:
        # A new life came up and did not become ready: the next restart is about that one.
        case.change(target_life=record.life_id)
    what = "replacement" if record.state is InstanceState.REPLACING else "restart"
    case.set_incident("open", f"{what} failed: {why}" if why else f"{what} failed")
    case.move(Trigger.RETRIED)
    again()


def on_overdue_command(case: Case) -> None:
    """Go on without the report that did not come in time."""
    flight = case.record.flight
    if flight is None:
        return
    case.end_flight("expired", "no report in time")
    if flight.action in STARTS and executor_is_silent(case):
        # Nobody tried: the order is repeated and not counted; the incident's age bounds it.
        if flight.action in WAITS_FOR.get(case.record.state, ()):
            case.want(flight.action)
        return
    after_command(case, flight.action, succeeded=False, why="no report in time")


def executor_is_silent(case: Case) -> bool:
    """True when the executor has not been heard about this instance for a while."""
    seen_at = case.record.observed_at
    limit = timedelta(seconds=case.policy.limits.executor_silent_s)
    return seen_at is None or case.now - seen_at > limit
