"""A batch of verdicts: which of them count for which condition, and the decisions in order."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gatemesh_common.messages import Verdict
from gatemesh_health_manager.conditions import counts_for, rules_that_count
from gatemesh_health_manager.facts import NO_FACTS, Copies, Facts, Failure, densest_window
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.on_verdict import is_failure_of_present_life
from gatemesh_health_manager.own_conditions import OwnCondition
from gatemesh_health_manager.policy import ConditionA, Policy
from gatemesh_health_manager.record import Decision


@dataclass(frozen=True)
class Counting:
    """What one condition of one pool may act by now."""

    rule: ConditionA | OwnCondition
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of an own condition, nothing for condition A."""
        return self.rule.name if isinstance(self.rule, OwnCondition) else ""

    @property
    def by_tenant(self) -> bool:
        """True where it matters whose prompts fail."""
        return isinstance(self.rule, OwnCondition) and self.rule.by_tenant

    def densest(self, failures: Iterable[Failure]) -> Facts:
        """Return the densest window of failures around a fresh one."""
        rule = self.rule
        tenants = rule.min_tenants if isinstance(rule, OwnCondition) else 1
        return densest_window(
            failures, rule.window_s, rule.max_per_prompt, rule.min_prompts, tenants
        )


def counted(policy: Policy, fleet: Fleet, verdicts: Sequence[Verdict]) -> list[Counting]:
    """Return the verdicts by which conditions that count may act now."""
    found: dict[tuple[str, str], Counting] = {}
    rules = {pool: rules_that_count(policy.for_pool(pool)) for pool in fleet.pools}
    for verdict in verdicts:
        record = fleet.records[verdict.instance_id]
        is_free = record.incident is None or record.incident.only_tells
        if not (record.serving and is_free) or not is_failure_of_present_life(record, verdict):
            continue
        for rule in rules[record.pool]:
            if counts_for(verdict, rule):
                one = Counting(rule)
                found.setdefault((record.pool, one.name), one).verdicts.append(verdict)
    return list(found.values())


def gathered(known: Iterable[tuple[Counting, Mapping[str, Facts]]]) -> dict[str, Facts]:
    """Return the facts of all conditions together, by instance."""
    facts: dict[str, Facts] = {}
    own: dict[str, list[tuple[str, Facts]]] = defaultdict(list)
    for counting, by_instance in known:
        for name, found in by_instance.items():
            if counting.name:
                own[name].append((counting.name, found))
            else:
                facts[name] = found
    for name, found_here in own.items():
        facts[name] = replace(facts.get(name, NO_FACTS), own=tuple(found_here))
    return facts


def decide_all(
    fleet: Fleet,
    verdicts: Sequence[Verdict],
    facts: Mapping[str, Facts],
    copies: Copies,
    now: datetime,
) -> list[Decision]:
    """Decide about each verdict, as if they had come one by one; `facts` are by instance."""
    decisions = []
    for verdict in verdicts:
        known = facts.get(verdict.instance_id, NO_FACTS)
        if is_failure_of_present_life(fleet.records[verdict.instance_id], verdict):
            known = known.copied(copies.note(verdict, now))
        decisions.append(fleet.apply(verdict.instance_id, verdict, now, known))
    return decisions
