"""What the passing of time does: every wait has an end."""

from datetime import timedelta

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.on_report import on_overdue_command
from gatemesh_health_manager.on_verdict import act_or_hold
from gatemesh_health_manager.record import Condition
from gatemesh_health_manager.states import Trigger

S = InstanceState


def on_tick(case: Case) -> None:
    """End what is overdue, act on what was held, let a healed instance be trusted again."""
    if case.record.flight is not None and case.now >= case.record.flight.due_at:
        on_overdue_command(case)
    if case.record.due_at is not None and case.now >= case.record.due_at:
        on_overdue_state(case)
    on_incident_age(case)
    above = case.score > case.policy.score.clear_above
    if above and case.record.state is S.SUSPECT and case.record.incident is None:
        case.move(Trigger.CLEARED)


def on_overdue_state(case: Case) -> None:
    """Go on without the answer that did not come in time."""
    case.change(due_at=None)
    state = case.record.state
    if state is S.EJECTED:
        case.confirm("probes did not answer in time")
    elif state is S.PROBATION:
        # No answer is no evidence against the engine: agents may be away. They are asked anew.
        case.give_ticket("probation", case.policy.probation.timeout_s)
    elif state is S.STARTING:
        case.restart_from(Trigger.OVERDUE, Condition.OVERDUE, "did not start by itself")
    elif case.record.serving:
        case.want(Action.READMIT)


def on_incident_age(case: Case) -> None:
    """Act on a held incident once there is room, let it expire, give up what lasts too long."""
    incident = case.record.incident
    if incident is None:
        return
    age = case.now - incident.opened_at
    if incident.status == "held":
        if age >= timedelta(seconds=case.policy.ejection.held_for_s):
            case.set_incident("expired", "no room in the ejection budget in time")
            case.change(evidence_since=case.now)
        elif not case.pool.paused and case.why_not_out() is None:
            act_or_hold(case)
    elif age >= timedelta(seconds=case.policy.limits.incident_for_s):
        case.give_up(f"not repaired within {case.policy.limits.incident_for_s:g} s")
