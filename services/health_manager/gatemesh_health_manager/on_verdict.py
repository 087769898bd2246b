"""What a verdict does: answers a probe ticket, or is evidence about the present life."""

from datetime import datetime

from gatemesh_common.messages import (
    Action,
    Attribution,
    CheckLevel,
    InstanceState,
    Outcome,
    Verdict,
)
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.conditions import (
    RANK,
    broken_condition,
    broken_own,
    is_not_up,
    is_silence,
    streaks_after,
)
from gatemesh_health_manager.facts import Facts, evidence_time
from gatemesh_health_manager.observing import is_refuted, observe_incident
from gatemesh_health_manager.own_conditions import ConsecutiveCondition, OwnCondition
from gatemesh_health_manager.playbooks import Plan, Steps
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.probing import schedule_probe, want_probe, want_second_probe
from gatemesh_health_manager.record import Condition, Incident, InstanceRecord
from gatemesh_health_manager.score import FULL_SCORE, penalised
from gatemesh_health_manager.states import Trigger
from gatemesh_health_manager.streaks import Streak


def on_verdict(case: Case, verdict: Verdict, facts: Facts) -> None:
    """Judge the instance by one verdict; one about an earlier life changes nothing."""
    if not is_about_present_life(case.record, verdict):
        return
    if answers_ticket(case.record, verdict):
        on_probe_result(case, verdict, facts)
    elif answers_closed_ticket(case.record, verdict):
        return
    elif is_failure_of_present_life(case.record, verdict):
        on_failure(case, verdict, facts)
    elif is_fault_of_a_request(case.record, verdict):
        on_fault_of_a_request(case, verdict)
    elif verdict.outcome is Outcome.PASSED and case.record.serving:
        on_pass(case, verdict)
    schedule_probe(case)


def is_about_present_life(record: InstanceRecord, verdict: Verdict) -> bool:
    """True when the verdict names the present life, or none."""
    return verdict.incarnation is None or verdict.incarnation == record.incarnation


def answers_ticket(record: InstanceRecord, verdict: Verdict) -> bool:
    """True for a result, passed or failed, of the probe suite that the instance waits for."""
    ticket = record.ticket
    return (
        ticket is not None
        and verdict.outcome is not Outcome.SKIPPED
        and ticket.ticket_id in tickets_named(verdict)
    )


def answers_closed_ticket(record: InstanceRecord, verdict: Verdict) -> bool:
    """True for a result of a suite of which the first one was taken, or that came too late."""
    return not tickets_named(verdict).isdisjoint(record.closed_tickets)


def tickets_named(verdict: Verdict) -> set[object]:
    """Return the tickets that a verdict may be about."""
    if verdict.check_level is not CheckLevel.L5:
        return set()
    named = verdict.details.get("ticket_id")
    return {verdict.request_id, named if isinstance(named, str) else verdict.request_id}


def is_failure_of_present_life(record: InstanceRecord, verdict: Verdict) -> bool:
    """True for a failure that counts: of the present life, not the request's, not answered yet."""
    return verdict.attribution is not Attribution.REQUEST and is_news_of_failure(record, verdict)


def is_fault_of_a_request(record: InstanceRecord, verdict: Verdict) -> bool:
    """True for a failure that another instance repeated: it counts for nothing."""
    return verdict.attribution is Attribution.REQUEST and is_news_of_failure(record, verdict)


def is_news_of_failure(record: InstanceRecord, verdict: Verdict) -> bool:
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
    lose_points(case, verdict, at, facts)
    if not case.record.serving:
        return
    case.change(streaks=streaks_after(case.record.streaks, verdict, at, case.policy))
    condition = broken_condition(verdict, at, facts, case.record.streaks, case.policy)
    if condition is not None:
        reason = reason_for(condition, verdict, facts, case.record)
        accuse(case, condition, reason, plan_for(condition, verdict, case.policy))
    elif (own := own_broken(case, verdict, at, facts)) is not None:
        accuse(
            case,
            Condition.OWN,
            reason_of_own(own, verdict, facts, case.record),
            case.policy.plan(own.playbook),
            own.name,
        )
    low = case.score < case.policy.score.suspect_below
    if low and case.record.state is InstanceState.HEALTHY:
        case.move(Trigger.DOUBTED)
        want_probe(case)
    ask_again(case, verdict, facts)


def own_broken(
    case: Case, verdict: Verdict, at: datetime, facts: Facts
) -> OwnCondition | ConsecutiveCondition | None:
    """Return the own condition that a failure breaks, if any."""
    return broken_own(verdict, at, facts, case.record.streaks, case.policy)


def lose_points(case: Case, verdict: Verdict, at: datetime, facts: Facts) -> None:
    """Let the score fall by what the failure costs beyond earlier copies of its prompt."""
    since, copied_at = case.record.evidence_since, facts.copied_at
    if copied_at is not None and since is not None and copied_at <= since:
        copied_at = None
    if copied_at is not None and at <= copied_at:
        return
    penalty, penalty_at = penalised(case.record, verdict, at, case.policy.score, copied_at)
    case.change(penalty=penalty, penalty_at=penalty_at)


def ask_again(case: Case, verdict: Verdict, facts: Facts) -> None:
    """Want a probe out of turn where failures pile up, and a second suite after a failed one."""
    if verdict.check_level in case.policy.condition_d.levels:
        undecided = case.record.streaks.d.length < case.policy.condition_d.consecutive
        (want_second_probe if undecided else want_probe)(case)
    elif verdict.check_level in case.policy.condition_c.levels:
        if case.record.streaks.c.length > 1:
            want_probe(case)
    elif facts.failures >= case.policy.probes.suspicion_failures:
        want_probe(case)


def on_fault_of_a_request(case: Case, verdict: Verdict) -> None:
    """Count nothing; after a proof, ask for the suite: both instances could be bad."""
    if verdict.hard:
        want_probe(case)


def on_pass(case: Case, verdict: Verdict) -> None:
    """End a streak, and what a held incident has against the instance by it."""
    at = evidence_time(verdict, case.now)
    case.change(streaks=streaks_after(case.record.streaks, verdict, at, case.policy))
    incident = case.record.incident
    if incident is None or incident.status != "held":
        return
    streak = streak_of(case, incident)
    if streak is not None and not streak.length:
        case.set_incident("resolved", f"a later {verdict.check_level} check passed")
    elif is_refuted(incident, verdict):
        case.set_incident("resolved", "refuted by probes")


def streak_of(case: Case, incident: Incident) -> Streak | None:
    """Return the streak that an incident is about; None for other conditions."""
    streaks = case.record.streaks
    if incident.condition is Condition.OWN:
        rules = case.policy.own_conditions
        names = {rule.name for rule in rules if isinstance(rule, ConsecutiveCondition)}
        return streaks.of(incident.own_name) if incident.own_name in names else None
    return {Condition.C: streaks.c, Condition.D: streaks.d}.get(incident.condition)


def reason_for(condition: Condition, verdict: Verdict, facts: Facts, record: InstanceRecord) -> str:
    """Word what broke the condition, for people who read the history."""
    streaks = record.streaks
    if condition is Condition.B and not verdict.hard:
        return f"proof in a probe suite: {verdict.reason}"
    if condition is Condition.B:
        return f"hard {verdict.check_level} failure: {verdict.reason}"
    if condition is Condition.C:
        counted = f"{streaks.c.length} failures in a row of {streaks.c.prompts} prompts"
        return f"{counted}, last: {verdict.reason}"
    if condition is Condition.D:
        return f"{streaks.d.length} suites failed in a row, last: {verdict.reason}"
    return f"{facts.failures} failures of {facts.prompts} prompts, last: {verdict.reason}"


def reason_of_own(
    rule: OwnCondition | ConsecutiveCondition,
    verdict: Verdict,
    facts: Facts,
    record: InstanceRecord,
) -> str:
    """Word what broke an own condition."""
    if isinstance(rule, ConsecutiveCondition):
        row = record.streaks.of(rule.name)
        counted = f"{row.length} failures in a row of {row.prompts} prompts"
        return f"{counted}, last: {verdict.reason}"
    found = dict(facts.own)[rule.name]
    return f"{found.failures} failures of {found.prompts} prompts, last: {verdict.reason}"


def plan_for(condition: Condition, verdict: Verdict, policy: PoolPolicy) -> Plan:
    """Return what follows a condition: weights are pulled anew where they may be to blame."""
    plan = policy.plan(playbook_of(condition, policy))
    trusted = condition is Condition.D and is_silence(verdict)
    return plan.without_new_weights() if trusted else plan


def playbook_of(condition: Condition, policy: PoolPolicy) -> str:
    """Return the name of the playbook that the rules give a condition of the house."""
    return {
        Condition.A: policy.condition_a.playbook,
        Condition.B: policy.condition_b.playbook,
        Condition.C: policy.condition_c.playbook,
        Condition.D: policy.condition_d.playbook,
    }[condition]


def accuse(case: Case, condition: Condition, reason: str, plan: Plan, own_name: str = "") -> None:
    """Open an incident and act on it, or hold it while a brake is on."""
    incident = case.record.incident
    rank = 0 if plan.only_tells else RANK[condition]
    if incident is not None and rank <= rank_of(incident):
        return
    case.accuse(condition, reason, plan, own_name)
    act_or_hold(case)


def rank_of(incident: Incident) -> int:
    """Return how grave the condition of an incident is; one that only tells gives way to all."""
    if incident.only_tells:
        return 0
    return RANK.get(incident.condition, max(RANK.values()))


def act_or_hold(case: Case) -> None:
    """Follow the playbook of the open incident unless a brake is on or the pool has no room."""
    incident = case.record.incident
    if incident is None:
        return
    if not case.acts:
        observe_incident(case)
        return
    if incident.only_told or case.frozen or case.why_not_out() is not None:
        case.set_incident("held")
        return
    case.set_incident("open")
    if "shift" in incident.plan and not has_shifted(case):
        return
    if case.count_out():
        take_out(case, incident.plan)
    else:
        case.stop_flapping()


def take_out(case: Case, plan: Steps) -> None:
    """Begin a playbook, once traffic was shifted where that comes first."""
    if "confirm" in plan:
        case.eject()
    elif "eject" in plan:
        case.take_out()
    else:
        case.leave()


def has_shifted(case: Case) -> bool:
    """Shift traffic to the instances that prove right; True once that is done."""
    until = case.record.shift_until
    if until is not None:
        return case.now >= until
    case.change(shift_until=case.after(case.policy.condition_c.shift_s))
    if case.record.state is InstanceState.HEALTHY:
        case.move(Trigger.DOUBTED)
        want_probe(case)
    return False


def on_probe_result(case: Case, verdict: Verdict, facts: Facts) -> None:
    """Confirm or refute a proof, end a probation, or add to what is known of a serving instance."""
    passed = verdict.outcome is Outcome.PASSED
    case.close_ticket()
    if case.record.serving:
        if passed:
            on_pass(case, verdict)
        else:
            on_failure(case, verdict, facts)
    elif case.record.state is InstanceState.EJECTED:
        if passed:
            refute(case)
        else:
            case.mend("confirmed by probes")
    elif passed:
        readmit(case)
    elif (left_s := time_to_start_s(case)) and is_not_up(verdict):
        case.give_ticket("probation", left_s)
    else:
        fail_probation(case)


def time_to_start_s(case: Case) -> float:
    """Return how long a life in its first probation may still take; 0 once it must be up."""
    due_at = case.record.due_at
    left_s = (due_at - case.now).total_seconds() if due_at else 0.0
    # More than probes alone are given: the rest is for its start.
    return left_s if left_s > case.policy.probation.timeout_s else 0.0


def fail_probation(case: Case) -> None:
    """Replace or restart a life that its probes refused."""
    if case.is_to_be_replaced():
        case.replace_from("probes failed")
    elif case.is_to_stay_away():
        case.stay_away("probes failed")
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
        probed_at=case.now,
        readmitted_at=case.now,
        target_life=None,
    )
    case.answer_evidence()
    case.move(Trigger.PROBES_PASSED)
    case.set_incident("resolved", "refuted" if was_refuted(case.record) else "repaired")
    case.want(Action.READMIT)


def was_refuted(record: InstanceRecord) -> bool:
    """True when the open incident ends with the life that it was about."""
    incident, refuted_at = record.incident, record.refuted_at
    return incident is not None and refuted_at is not None and refuted_at >= incident.opened_at
