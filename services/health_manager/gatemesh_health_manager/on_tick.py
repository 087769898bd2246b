"""What the passing of time does: every wait has an end."""

from datetime import datetime, timedelta

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.measuring import Measures, breaks_measure, said_of
from gatemesh_health_manager.observing import let_expire, on_observed_incident
from gatemesh_health_manager.on_report import on_overdue_command
from gatemesh_health_manager.on_verdict import accuse, act_or_hold
from gatemesh_health_manager.own_conditions import TelemetryCondition
from gatemesh_health_manager.probing import schedule_probe
from gatemesh_health_manager.record import Condition, Incident
from gatemesh_health_manager.rolling_back import go_on_rolling_back, roll_back_by_rule
from gatemesh_health_manager.states import Trigger

S = InstanceState


def on_tick(case: Case, requests: int = 0, measures: Measures = ()) -> None:
    """End what is overdue, act on what was held, let a healed instance be trusted again."""
    if case.record.flight is not None and case.now >= case.record.flight.due_at:
        on_overdue_command(case)
    if case.record.due_at is not None and case.now >= case.record.due_at:
        on_overdue_state(case)
    on_measures(case, measures)
    on_observed_incident(case)
    roll_back_by_rule(case)
    on_incident_age(case)
    on_shift_end(case)
    above = case.score > case.policy.score.clear_above
    if above and case.record.state is S.SUSPECT and case.record.incident is None:
        case.move(Trigger.CLEARED)
    schedule_probe(case, requests)


def on_measures(case: Case, measures: Measures) -> None:
    """Accuse an instance when a condition over telemetry is broken, in the order of the rules."""
    known = dict(measures)
    for rule in case.policy.own_conditions if known and case.record.serving else ():
        measure = known.get(rule.name)
        if measure is None or not isinstance(rule, TelemetryCondition):
            continue
        if breaks_measure(measure, rule):
            plan = case.policy.plan(rule.playbook)
            accuse(case, Condition.OWN, said_of(measure, rule), plan, rule.name)
            return


def on_overdue_state(case: Case) -> None:
    """Go on without the answer that did not come in time."""
    case.change(due_at=None)
    state = case.record.state
    if state is S.EJECTED:
        case.mend("probes did not answer in time")
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
    if incident is None or incident.only_told:
        return
    if case.braked and not incident.is_wanted:
        # A person decides what becomes of it, however long that takes.
        return
    age = case.now - counted_from(case, incident)
    if case.is_to_be_rolled_back():
        on_waiting_roll_back(case, age)
    elif incident.status == "held":
        on_held(case, incident, age)
    elif case.record.serving:
        # Traffic is being shifted away; that ends by itself.
        return
    elif age >= timedelta(seconds=case.policy.limits.incident_for_s):
        case.give_up(f"not repaired within {case.policy.limits.incident_for_s:g} s")


def on_held(case: Case, incident: Incident, age: timedelta) -> None:
    """Act once there is room, or let it expire."""
    if age >= timedelta(seconds=case.policy.ejection.held_for_s):
        let_expire(case, "no room in the ejection budget in time")
    elif not case.frozen and case.why_not_out() is None:
        act_on_held(case, incident)


def on_waiting_roll_back(case: Case, age: timedelta) -> None:
    """Begin what has waited for room or for another command; in the end let it be."""
    if case.record.serving and age >= timedelta(seconds=case.policy.limits.incident_for_s):
        let_expire(case, "no room to roll it back in time")
    else:
        go_on_rolling_back(case)


def counted_from(case: Case, incident: Incident) -> datetime:
    """Return when an incident's time began: it stands still while the fleet brake is on."""
    reset_at = case.pool.brake_reset_at
    if reset_at is None:
        return incident.opened_at
    return max(incident.opened_at, min(reset_at, case.now))


def act_on_held(case: Case, incident: Incident) -> None:
    """Act now that there is room, unless the evidence is of a time that is over.

    What a person has let go of the fleet brake acts: he has looked at it.
    """
    window = timedelta(seconds=case.policy.condition_a.window_s)
    over = case.now - case.record.penalty_at > window
    replayed = counted_from(case, incident) > incident.opened_at
    if incident.condition is Condition.A and over and not replayed:
        let_expire(case, "no failure any more when there was room")
    else:
        act_or_hold(case)


def on_shift_end(case: Case) -> None:
    """Go on to the drain once traffic was shifted away for long enough."""
    incident, until = case.record.incident, case.record.shift_until
    if incident is None or until is None or case.now < until:
        return
    if "shift" in incident.plan and incident.status == "open":
        act_or_hold(case)
