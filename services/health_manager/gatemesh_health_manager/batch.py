"""A batch of verdicts: which of them condition A counts, and the decisions about them in order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from gatemesh_common.messages import Verdict
from gatemesh_health_manager.conditions import counts_for_a
from gatemesh_health_manager.facts import NO_FACTS, Copies, Facts
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.on_verdict import is_failure_of_present_life
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision


def counted(policy: Policy, fleet: Fleet, verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts by which condition A may act now, by pool."""
    by_pool: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        record = fleet.records[verdict.instance_id]
        rule = policy.for_pool(record.pool).condition_a
        open_to_a = record.serving and record.incident is None
        if (
            open_to_a
            and counts_for_a(verdict, rule)
            and is_failure_of_present_life(record, verdict)
        ):
            by_pool[record.pool].append(verdict)
    return by_pool


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
            known = replace(known, copied_at=copies.note(verdict, now))
        decisions.append(fleet.apply(verdict.instance_id, verdict, now, known))
    return decisions
