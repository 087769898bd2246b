"""What operators may ask for, and when it is refused."""

from collections.abc import Callable

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.on_verdict import act_or_hold
from gatemesh_health_manager.ordering import ENDS_OR_CHANGES_A_LIFE
from gatemesh_health_manager.playbooks import REPAIR, REPLACE, RESTART, ROLL_BACK, STOP, Plan
from gatemesh_health_manager.record import Condition
from gatemesh_health_manager.rolling_back import LEFT_ALONE, begin_rolling_back
from gatemesh_health_manager.states import TRANSITIONS, Trigger

S = InstanceState


def on_request(case: Case, request: Asked) -> None:
    """Follow an operator's request about one instance, or say why not."""
    if not case.record.observed:
        case.refusal = "the executor has not observed this instance"
        return
    REQUESTS[request.action](case, request)


def on_drain(case: Case, request: Asked) -> None:
    """Drain, stop, and keep away until released."""
    if allowed(case, Trigger.CONDEMNED):
        take_over(case, request, STOP)
        case.condemn()


def on_restart(case: Case, request: Asked) -> None:
    """Drain and restart, through probation."""
    if case.record.state is S.QUARANTINED:
        revive(case, request)
    elif allowed(case, Trigger.CONDEMNED):
        take_over(case, request, RESTART)
        case.condemn()


def on_eject(case: Case, request: Asked) -> None:
    """Take out at once, as a hard proof does; probes decide what follows."""
    if allowed(case, Trigger.PROVEN):
        take_over(case, request, RESTART)
        case.eject()


def on_repair(case: Case, request: Asked) -> None:
    """Take out and repair in place; what cannot be repaired is restarted."""
    if allowed(case, Trigger.PROVEN):
        case.change(repaired_at=None)
        take_over(case, request, REPAIR)
        case.take_out()


def on_replace(case: Case, request: Asked) -> None:
    """Take out and start anew from weights pulled anew, through probation."""
    if case.record.state is S.QUARANTINED:
        case.change(restarts=(), outs=())
        take_over(case, request, REPLACE)
        case.replace_from(case.record.incident.cause if case.record.incident else "")
    elif allowed(case, Trigger.PROVEN):
        take_over(case, request, REPLACE)
        case.take_out()


def on_quarantine(case: Case, request: Asked) -> None:
    """Take out and leave the process alone until released."""
    if allowed(case, Trigger.WITHDRAWN):
        take_over(case, request, STOP)
        case.move(Trigger.WITHDRAWN)
        case.set_incident("quarantined")
        if case.record.running:
            case.want(Action.EJECT)


def on_release(case: Case, request: Asked) -> None:
    """Let a quarantined instance prove itself; a stopped one is started first."""
    if case.record.state is not S.QUARANTINED:
        case.refusal = f"it is {case.record.state}, only a quarantined instance can be released"
    elif case.record.running:
        case.change(restarts=(), outs=())
        take_over(case, request, RESTART)
        case.enter_probation(Trigger.RELEASED)
    else:
        revive(case, request)


def revive(case: Case, request: Asked) -> None:
    """Restart a quarantined instance with a fresh restart budget."""
    case.change(restarts=(), outs=(), target_life=case.record.life_id)
    take_over(case, request, RESTART)
    case.move(Trigger.REVIVED)
    case.restart()


def on_set_weight(case: Case, request: Asked) -> None:
    """Keep its weight below a ceiling until that is lifted; none at all only as the budget lets."""
    if request.weight == 0:
        case.refusal = case.why_not_out()
    if case.refusal is None:
        case.change(weight_ceiling=None if request.weight == 1 else request.weight)


def on_roll_back(case: Case, request: Asked) -> None:
    """Roll back what it runs; of a whole pool one after the other, as there is room."""
    state, whole_pool = case.record.state, request.instance_id is None
    # Who is quarantined is released by name only.
    if state in LEFT_ALONE and (whole_pool or state is not S.QUARANTINED):
        case.refusal = f"not possible while it is {state}"
    elif not whole_pool:
        case.refusal = case.why_not_out()
    if case.refusal is None:
        take_over(case, request, ROLL_BACK)
        begin_rolling_back(case)


def on_brake_reset(case: Case, request: Asked) -> None:
    """Act on what the fleet brake has held, within the budget, or have it count for nothing."""
    incident = case.record.incident
    if incident is not None and incident.rolls_back:
        return
    if request.backlog == "replay":
        if incident is not None and incident.status == "held":
            act_or_hold(case)
        return
    if case.record.serving:
        case.set_incident("expired", skipped_by(request))
        case.answer_evidence()
    elif is_spared(case):
        case.enter_probation(Trigger.SPARED)
        case.set_incident("expired", skipped_by(request))


def skipped_by(request: Asked) -> str:
    """Word how an incident ended that nobody acted on."""
    return f"skipped by {request.asker} after the fleet brake"


def is_spared(case: Case) -> bool:
    """True for an instance whose life the fleet brake has kept from being ended."""
    record, incident = case.record, case.record.incident
    asked = incident is not None and incident.is_wanted
    waits = record.wanted in ENDS_OR_CHANGES_A_LIFE and record.running
    return waits and not asked and (record.state, Trigger.SPARED) in TRANSITIONS


def allowed(case: Case, trigger: Trigger) -> bool:
    """True when the state table and the ejection budget allow the trigger; else says why not."""
    if (case.record.state, trigger) not in TRANSITIONS:
        case.refusal = f"not possible while it is {case.record.state}"
    else:
        case.refusal = case.why_not_out()
    return case.refusal is None


def take_over(case: Case, request: Asked, plan: Plan) -> None:
    """End the incident under way, and open the operator's."""
    case.set_incident("resolved", f"taken over by {request.asker}")
    said = f": {request.reason}" if request.reason else ""
    case.open_incident(Condition.OPERATOR, f"{request.action} asked by {request.asker}{said}", plan)


REQUESTS: dict[str, Callable[[Case, Asked], None]] = {
    "drain": on_drain,
    "repair": on_repair,
    "replace": on_replace,
    "restart": on_restart,
    "eject": on_eject,
    "quarantine": on_quarantine,
    "release": on_release,
    "reset_brake": on_brake_reset,
    "set_weight": on_set_weight,
    "roll_back": on_roll_back,
}
