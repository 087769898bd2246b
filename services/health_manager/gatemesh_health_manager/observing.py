"""Observe mode: what would be done is told, nothing is, and whatever runs serves."""

from datetime import timedelta

from gatemesh_common.messages import Action, CheckLevel, InstanceState, Verdict
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.ordering import ENDS_OR_CHANGES_A_LIFE
from gatemesh_health_manager.probing import want_probe
from gatemesh_health_manager.record import Condition, Incident, InstanceRecord
from gatemesh_health_manager.states import TRANSITIONS, Trigger

S = InstanceState

LOOK_MARGIN = timedelta(seconds=5)
"""A look so much later than a report shows what is after it, though clocks differ a little."""


def settle(case: Case) -> None:
    """Make a case fit the mode of its pool, which may have changed since the last event."""
    if case.policy.mode == "act":
        begin_to_act(case)
    elif not case.asked:
        let_serve(case)


def begin_to_act(case: Case) -> None:
    """Let what was only observed count for nothing; wait for a process that is not there."""
    record = case.record
    if record.incident is not None and record.incident.would:
        let_expire(case, "was only observed; the pool is in act mode now")
    absent = record.state is S.STARTING and record.observed and not record.running
    if absent and record.incarnation > 0 and record.due_at is None:
        case.change(due_at=case.after(case.policy.restart.start_timeout_s))


def let_serve(case: Case) -> None:
    """Put back into rotation whatever runs; what is under way and cannot be recalled ends first."""
    record = case.record
    if record.serving:
        if record.incident is not None and not record.incident.would:
            observe_incident(case)
    elif record.state is S.STARTING:
        case.change(due_at=None)
    elif record.running and (is_intact(record) or is_recalled(case)):
        put_back(case)


def is_intact(record: InstanceRecord) -> bool:
    """True for an instance that is out and that nothing touches; a repair under way ends first."""
    repairing = record.flight is not None and record.flight.action is Action.REPAIR
    return record.state in (S.PROBATION, S.EJECTED) and not repairing


def is_recalled(case: Case) -> bool:
    """True for a running instance whose end was decided but not ordered yet."""
    record = case.record
    waits = record.flight is None and record.wanted in ENDS_OR_CHANGES_A_LIFE
    if not waits or (record.state, Trigger.SPARED) not in TRANSITIONS:
        return False
    seen_at = record.observed_at
    # The report of a drain comes before the look that shows the process gone.
    looked = seen_at is not None and seen_at > record.state_since + LOOK_MARGIN
    return looked or record.state is S.DRAINING


def put_back(case: Case) -> None:
    """Let it serve unproven; balancers that were told to leave it out are told again."""
    incident, flight = case.record.incident, case.record.flight
    was_out = (incident is not None and not incident.would) or flight is not None
    if case.record.state is not S.PROBATION:
        case.move(Trigger.SPARED)
    case.change(target_life=None)
    case.answer_evidence()
    case.move(Trigger.LET_THROUGH)
    case.set_incident("resolved", "serves unproven: the pool is in observe mode")
    want_probe(case)
    if was_out:
        case.want(Action.READMIT)


def observe_incident(case: Case) -> None:
    """Say what would be done about the open incident."""
    incident = case.record.incident
    if incident is None:
        return
    case.only_observe(would_do(case, incident))
    if incident.condition is Condition.B:
        want_probe(case)


def would_do(case: Case, incident: Incident) -> str:
    """Return what a pool in act mode would do about an incident, brakes included."""
    if incident.only_tells:
        return "tell"
    brake, no_room = case.why_brake_falls(), case.why_not_out()
    if brake is not None:
        return f"nothing, the fleet brake would fall: {brake}"
    if case.frozen:
        return f"nothing, {'the pool is paused' if case.pool.paused else 'the fleet brake is on'}"
    if no_room is not None:
        return f"wait for room: {no_room}"
    return ", ".join(steps_of(case, incident))


def steps_of(case: Case, incident: Incident) -> tuple[str, ...]:
    """Return the steps of a playbook in order, with the repair that other rules put in."""
    plan = incident.plan
    if not case.may_repair():
        return tuple(step for step in plan if step != "repair")
    begun = ["eject" if step == "drain" else step for step in plan[:-1] if step != "repair"]
    return (*begun, "repair", plan[-1])


def observe_exit(case: Case) -> None:
    """Wait for whoever runs the process to start it again."""
    readmit = case.record.wanted is Action.READMIT
    case.set_incident("expired", "its life has ended")
    case.open_incident(Condition.EXIT, "exited by itself")
    case.only_observe("restart")
    case.move(Trigger.LEFT)
    if readmit:
        case.want(Action.READMIT)


def observe_restart(case: Case) -> None:
    """Note a life that nobody asked for; that it serves at once is what observe mode is."""
    case.set_incident("expired", "its life has ended")
    case.open_incident(Condition.EXIT, "restarted by itself")
    case.only_observe("keep out until its probes pass")
    case.move(Trigger.RELIVED)


def is_refuted(incident: Incident, verdict: Verdict) -> bool:
    """True for a proof that was only observed when a probe suite speaks against it."""
    told = incident.condition is Condition.B and incident.only_told
    return told and verdict.check_level is CheckLevel.L5


def on_observed_incident(case: Case) -> None:
    """End what was only observed once nothing has failed for as long as it could be held."""
    incident = case.record.incident
    if incident is None or not incident.only_told:
        return
    quiet_s = case.policy.ejection.held_for_s
    last = max(incident.opened_at, case.record.penalty_at)
    if case.now - last >= timedelta(seconds=quiet_s):
        let_expire(case, f"nothing failed for {quiet_s:g} s; was only told")


def let_expire(case: Case, reason: str) -> None:
    """End a held incident, and its evidence with it."""
    case.set_incident("expired", reason)
    case.answer_evidence()
