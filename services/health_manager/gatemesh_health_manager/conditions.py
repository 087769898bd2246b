"""The rollback conditions, evaluated on one verdict and the facts around it."""

from gatemesh_common.messages import Outcome, Verdict
from gatemesh_health_manager.facts import Facts
from gatemesh_health_manager.policy import ConditionA, ConditionB, PoolPolicy
from gatemesh_health_manager.record import Condition

RANK = {Condition.A: 1, Condition.B: 2}
"""A held incident takes on the graver condition when that one is broken too."""


def broken_condition(verdict: Verdict, facts: Facts, policy: PoolPolicy) -> Condition | None:
    """Return the gravest condition that a failure breaks, if any."""
    if verdict.outcome is not Outcome.FAILED:
        return None
    if breaks_b(verdict, policy.condition_b):
        return Condition.B
    if counts_for_a(verdict, policy.condition_a) and breaks_a(facts, policy.condition_a):
        return Condition.A
    return None


def breaks_b(verdict: Verdict, rule: ConditionB) -> bool:
    """True when one failure is proof enough to take the instance out."""
    return rule.enabled and verdict.hard and verdict.check_level in rule.levels


def counts_for_a(verdict: Verdict, rule: ConditionA) -> bool:
    """True when a failure belongs into the window of condition A."""
    return rule.enabled and verdict.check_level in rule.levels


def breaks_a(facts: Facts, rule: ConditionA) -> bool:
    """True when a window holds more failures, of enough prompts, than the rule tolerates."""
    return facts.failures > rule.more_than and facts.prompts >= rule.min_prompts
