"""The rollback conditions, evaluated on one verdict and the facts around it."""

from datetime import datetime
from typing import Any

from gatemesh_common.messages import CheckLevel, Outcome, Verdict
from gatemesh_health_manager.facts import Facts, prompt_key
from gatemesh_health_manager.own_conditions import ConsecutiveCondition, OwnCondition
from gatemesh_health_manager.policy import (
    ConditionA,
    ConditionB,
    ConditionC,
    ConditionD,
    PoolPolicy,
)
from gatemesh_health_manager.record import Condition
from gatemesh_health_manager.streaks import EMPTY, Streak, Streaks

RANK = {Condition.OWN: 1, Condition.A: 1, Condition.C: 2, Condition.B: 3, Condition.D: 4}
"""What is not acted on yet takes on the graver condition when that one is broken too."""
SILENT = ("no answer", "no 200", "status ")
"""Beginnings of the faults that agents tell when an engine did not answer a probe."""


def broken_condition(
    verdict: Verdict, at: datetime, facts: Facts, streaks: Streaks, policy: PoolPolicy
) -> Condition | None:
    """Return the gravest condition that a failure at some moment breaks, if any."""
    if verdict.outcome is not Outcome.FAILED:
        return None
    level = verdict.check_level
    if level in policy.condition_d.levels and breaks_d(streaks.d, at, policy.condition_d):
        return Condition.D
    if breaks_b(verdict, policy.condition_b):
        return Condition.B
    if level in policy.condition_c.levels and breaks_c(streaks.c, at, policy.condition_c):
        return Condition.C
    if counts_for_a(verdict, policy.condition_a) and breaks_a(facts, policy.condition_a):
        return Condition.A
    return None


def breaks_b(verdict: Verdict, rule: ConditionB) -> bool:
    """True when one failure is proof enough to take the instance out."""
    if not rule.enabled:
        return False
    return (verdict.hard and verdict.check_level in rule.levels) or has_proof(verdict, rule)


def has_proof(verdict: Verdict, rule: ConditionB) -> bool:
    """True for a failed probe suite with an answer that only a broken engine gives."""
    if verdict.check_level is not CheckLevel.L5:
        return False
    found = list(faults_of(verdict).values())
    return any(fault in found for fault in rule.suite_faults)


def is_not_up(verdict: Verdict) -> bool:
    """True for a suite that asked nothing, since `/health` did not answer in time."""
    return verdict.details.get("failed") == ["health"] and set(faults_of(verdict)) == {"health"}


def is_silence(verdict: Verdict) -> bool:
    """True for a failed suite that got no answer at all: weights are not to blame for that."""
    faults, failed = faults_of(verdict), verdict.details.get("failed")
    wrong = [name for name in failed if name not in faults] if isinstance(failed, list) else []
    return bool(faults) and not wrong and all(map(_says_nothing, faults.values()))


def _says_nothing(fault: object) -> bool:
    return isinstance(fault, str) and fault.startswith(SILENT)


def faults_of(verdict: Verdict) -> dict[str, Any]:
    """Return what was at fault in which answer of a probe suite, as far as it was told."""
    faults = verdict.details.get("faults")
    return faults if isinstance(faults, dict) else {}


def counts_for_a(verdict: Verdict, rule: ConditionA) -> bool:
    """True when a failure belongs into the window of condition A."""
    return rule.enabled and verdict.check_level in rule.levels


def counts_for(verdict: Verdict, rule: ConditionA | OwnCondition | ConsecutiveCondition) -> bool:
    """True when a failure belongs into the window, or the row, of a condition."""
    if isinstance(rule, ConditionA):
        return counts_for_a(verdict, rule)
    right_reason = not rule.reasons or verdict.reason in rule.reasons
    right_kind = rule.hard is None or verdict.hard is rule.hard
    return verdict.check_level in rule.levels and right_reason and right_kind


def rules_that_count(policy: PoolPolicy) -> tuple[ConditionA | OwnCondition, ...]:
    """Return the conditions that count failures in a window."""
    own = (rule for rule in policy.own_conditions if isinstance(rule, OwnCondition))
    return (policy.condition_a, *own)


def broken_own(
    verdict: Verdict, at: datetime, facts: Facts, streaks: Streaks, policy: PoolPolicy
) -> OwnCondition | ConsecutiveCondition | None:
    """Return the first own condition that a failure breaks, in the order of the rules."""
    if verdict.outcome is not Outcome.FAILED or not policy.own_conditions:
        return None
    known = dict(facts.own)
    for rule in policy.own_conditions:
        if isinstance(rule, ConsecutiveCondition):
            if counts_for(verdict, rule) and breaks_row(streaks.of(rule.name), at, rule):
                return rule
        elif isinstance(rule, OwnCondition):
            found = known.get(rule.name)
            if found is not None and counts_for(verdict, rule) and breaks_own(found, rule):
                return rule
    return None


def breaks_row(streak: Streak, at: datetime, rule: ConsecutiveCondition | ConditionC) -> bool:
    """True when a failure belongs to a streak that is long enough, of enough prompts."""
    long = streak.length >= rule.consecutive and streak.prompts >= rule.min_prompts
    return streak.is_open_at(at) and long


def breaks_own(facts: Facts, rule: OwnCondition) -> bool:
    """True when a window holds more failures, of enough prompts and tenants, than are tolerated."""
    many = facts.failures > rule.more_than
    return many and facts.prompts >= rule.min_prompts and facts.tenants >= rule.min_tenants


def breaks_a(facts: Facts, rule: ConditionA) -> bool:
    """True when a window holds more failures, of enough prompts, than the rule tolerates."""
    return facts.failures > rule.more_than and facts.prompts >= rule.min_prompts


def breaks_c(streak: Streak, at: datetime, rule: ConditionC) -> bool:
    """True when a failure belongs to a streak that is long enough, of enough prompts."""
    return rule.enabled and breaks_row(streak, at, rule)


def breaks_d(streak: Streak, at: datetime, rule: ConditionD) -> bool:
    """True when a failed suite belongs to a streak that is long enough."""
    return rule.enabled and streak.is_open_at(at) and streak.length >= rule.consecutive


def streaks_after(streaks: Streaks, verdict: Verdict, at: datetime, policy: PoolPolicy) -> Streaks:
    """Return the streaks after a verdict on the present life; one that was skipped is none."""
    c, d, level = streaks.c, streaks.d, verdict.check_level
    if level in policy.condition_c.levels:
        c = _lengthened(c, verdict, at)
    if level in policy.condition_d.levels:
        d = _lengthened(d, verdict, at)
    own = own_streaks_after(streaks.own, verdict, at, policy)
    if c is streaks.c and d is streaks.d and own is streaks.own:
        return streaks
    return Streaks(c, d, own)


def own_streaks_after(
    known: tuple[tuple[str, Streak], ...], verdict: Verdict, at: datetime, policy: PoolPolicy
) -> tuple[tuple[str, Streak], ...]:
    """Return the streaks of own conditions after a verdict; the same ones where none changes."""
    if not policy.own_conditions:
        return known
    streaks = dict(known)
    for rule in policy.own_conditions:
        if isinstance(rule, ConsecutiveCondition) and verdict.check_level in rule.levels:
            before = streaks.get(rule.name, EMPTY)
            failed_otherwise = verdict.outcome is Outcome.FAILED and not counts_for(verdict, rule)
            after = before if failed_otherwise else _lengthened(before, verdict, at)
            if after is not before:
                streaks[rule.name] = after
    after_all = tuple(sorted(streaks.items()))
    return known if after_all == known else after_all


def _lengthened(streak: Streak, verdict: Verdict, at: datetime) -> Streak:
    if verdict.outcome is Outcome.FAILED:
        return streak.failed(at, prompt_key(verdict))
    return streak.passed(at) if verdict.outcome is Outcome.PASSED else streak
