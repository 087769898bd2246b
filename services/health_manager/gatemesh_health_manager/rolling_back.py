"""Going back to the model version before: asked for, or by the rules once the brake has fallen."""

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.playbooks import ROLL_BACK
from gatemesh_health_manager.record import Condition
from gatemesh_health_manager.states import TRANSITIONS, Trigger

S = InstanceState
LEFT_ALONE = frozenset({S.STARTING, S.QUARANTINED, S.RETIRED})
"""States that a person looks after, or in which nothing is known yet."""


def roll_back_by_rule(case: Case) -> None:
    """Begin to roll back what runs the version to blame, where the rules want that; once each."""
    pool, record = case.pool, case.record
    may_act = case.policy.mode == "act" and case.policy.fleet_brake.roll_back == "act"
    wanted = may_act and pool.suspect_version
    if not wanted or pool.paused or record.model_version != pool.suspect_version:
        return
    if record.state in LEFT_ALONE or is_being_rolled_back(case):
        return
    case.set_incident("resolved", "taken over by the fleet brake")
    reason = f"most of those that run {pool.suspect_version} were accused"
    case.open_incident(Condition.ROLL_BACK, reason, ROLL_BACK)
    begin_rolling_back(case)


def is_being_rolled_back(case: Case) -> bool:
    """True where that is under way or was tried since the brake fell, or a person acts."""
    incident, at, since = case.record.incident, case.record.rolled_back_at, case.pool.braked_at
    tried = at is not None and since is not None and at >= since
    return tried or (incident is not None and incident.is_wanted)


def begin_rolling_back(case: Case) -> None:
    """Roll back what the open incident is about, at once or as soon as that is possible."""
    if case.record.serving:
        case.set_incident("held")
    go_on_rolling_back(case)


def go_on_rolling_back(case: Case) -> None:
    """Take it out where the pool has room, then roll it back; wait for what is under way."""
    incident = case.record.incident
    by_rule = incident is not None and incident.condition is Condition.ROLL_BACK
    if case.record.flight is not None or (by_rule and case.pool.paused):
        return
    if case.record.serving:
        if case.why_not_out() is None:
            case.set_incident("open")
            case.take_out()
    elif (case.record.state, Trigger.ROLLED_BACK) in TRANSITIONS:
        case.set_incident("open")
        case.roll_back()
