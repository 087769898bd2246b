"""What a verdict does: answers a probe ticket, or is evidence against the present life."""

from gatemesh_common.messages import (
    Action,
    CheckLevel,
    InstanceState,
    Outcome,
    Verdict,
)
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.conditions import RANK, broken_condition
from gatemesh_health_manager.facts import Facts, evidence_time
from gatemesh_health_manager.record import Condition, Incident, InstanceRecord
from gatemesh_health_manager.score import FULL_SCORE, penalised
from gatemesh_health_manager.states import Trigger


def on_verdict(case: Case, verdict: Verdict, facts: Facts) -> None:
    """Judge the instance by one verdict; one about an earlier life changes nothing."""
    if not is_about_present_life(case.record, verdict):
        return
    if answers_ticket(case.record, verdict):
        on_probe_result(case, verdict)
    elif is_failure_of_present_life(case.record, verdict):
        on_failure(case, verdict, facts)


def is_about_present_life(record: InstanceRecord, verdict: Verdict) -> bool:
    """True when the verdict names the present life, or none."""
    return verdict.incarnation is None or verdict.incarnation == record.incarnation


def answers_ticket(record: InstanceRecord, verdict: Verdict) -> bool:
    """True for a result, passed or failed, of the probe suite that the instance waits for."""
    ticket = record.ticket
    return (
        ticket is not None
        and verdict.check_level is CheckLevel.L5
        and verdict.outcome is not Outcome.SKIPPED
        and ticket.ticket_id in (verdict.request_id, verdict.details.get("ticket_id"))
    )


def is_failure_of_present_life(record: InstanceRecord, verdict: Verdict) -> bool:
    """True for a failure of the present life that no earlier decision has answered yet."""
    since = record.evidence_since
    return (
        verdict.outcome is Outcome.FAILED
        and is_about_present_life(record, verdict)
        and (since is None or verdict.timestamp > since)
    )


def on_failure(case: Case, verdict: Verdict, facts: Facts) -> None:
    """Let the score fall; accuse the instance when a condition is broken, else doubt it."""
    at = evidence_time(verdict, case.now)
    penalty, penalty_at = penalised(case.record, verdict, at, case.policy.score)
    case.change(penalty=penalty, penalty_at=penalty_at)
    if not case.record.serving:
        return
    condition = broken_condition(verdict, facts, case.policy)
    if condition is not None:
        accuse(case, condition, reason_for(condition, verdict, facts))
    low = case.score < case.policy.score.suspect_below
    if low and case.record.state is InstanceState.HEALTHY:
        case.move(Trigger.DOUBTED)


def reason_for(condition: Condition, verdict: Verdict, facts: Facts) -> str:
    """Word what broke the condition, for people who read the history."""
    if condition is Condition.B:
        return f"hard {verdict.check_level} failure: {verdict.reason}"
    return f"{facts.failures} failures of {facts.prompts} prompts, last: {verdict.reason}"


def accuse(case: Case, condition: Condition, reason: str) -> None:
    """Open an incident and act on it, or hold it while a brake is on."""
    incident = case.record.incident
    if incident is not None and RANK[condition] <= rank_of(incident):
        return
    case.open_incident(condition, reason)
    act_or_hold(case)


def rank_of(incident: Incident) -> int:
    """Return how grave the condition of an incident is."""
    return RANK.get(incident.condition, max(RANK.values()))


def act_or_hold(case: Case) -> None:
    """Follow the playbook of the open incident unless the pool is paused or has no room."""
    incident = case.record.incident
    if incident is None:
        return
    if case.pool.paused or case.why_not_out() is not None:
        case.set_incident("held")
        return
    case.set_incident("open")
    if incident.condition is Condition.B:
        case.eject()
    else:
        case.condemn()


def on_probe_result(case: Case, verdict: Verdict) -> None:
    """Confirm or refute a proof, or end a probation."""
    passed = verdict.outcome is Outcome.PASSED
    if case.record.state is InstanceState.EJECTED:
        if passed:
            refute(case)
        else:
            case.confirm("confirmed by probes")
    elif passed:
        readmit(case)
    else:
        case.restart_from(Trigger.PROBES_FAILED, Condition.PROBES, "probes failed")


def refute(case: Case) -> None:
    """Keep the life: the proof was one bad prompt. A fresh suite decides about its return."""
    case.change(refuted_at=case.now)
    case.set_incident("open", "refuted by probes")
    case.enter_probation(Trigger.REFUTED)


def readmit(case: Case) -> None:
    """Put the instance back; what was known against it is answered."""
    case.change(
        penalty=FULL_SCORE - case.policy.score.readmit_score,
        penalty_at=case.now,
        evidence_since=case.now,
        target_life=None,
    )
    case.move(Trigger.PROBES_PASSED)
    case.set_incident("resolved", "refuted" if was_refuted(case.record) else "repaired")
    case.want(Action.READMIT)


def was_refuted(record: InstanceRecord) -> bool:
    """True when the open incident ends with the life that it was about."""
    incident, refuted_at = record.incident, record.refuted_at
    return incident is not None and refuted_at is not None and refuted_at >= incident.opened_at
