"""What a request would do, in words; decided about on a copy, and never carried out."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.record import Decision, InstanceRecord


def try_out(fleet: Fleet, request: Asked, now: datetime) -> tuple[str, str]:
    """Return why a request would be refused, and what it would do; the fleet stays as it is."""
    copy = Fleet(fleet.policy, fleet.pools.values(), fleet.records.values())
    refusal, decisions = copy.answer(request, now)
    return refusal, "" if refusal else described(copy, request, decisions, now)


def described(fleet: Fleet, request: Asked, decisions: Sequence[Decision], now: datetime) -> str:
    """Say what decisions change: states, the first command of each, and what is left to serve."""
    before = fleet.stored
    steps = [part for decision in decisions for part in _parts(decision, before, now)]
    if request.action in ("pause", "resume"):
        steps.append(f"pool {request.pool} would be {request.action}d")
    facts = fleet.facts_of(request.pool)
    left = f"{facts.serving} of {facts.total} in rotation then"
    return "; ".join([*(steps or ["nothing would change"]), left])


def _parts(decision: Decision, before: Mapping[str, InstanceRecord], now: datetime) -> list[str]:
    name, record = decision.record.instance_id, decision.record
    moves = [
        f"{name}: {step.before} -> {step.after} ({step.trigger})" for step in decision.transitions
    ]
    orders = [f"{name}: {order.command.action} is ordered" for order in decision.commands]
    orders += _later(record, before.get(name), now)
    ends = [f"{name}: incident {one.status}" for one in decision.incidents if one.ended_at]
    waits = [f"{name}: waits for room" for one in decision.incidents if one.status == "held"]
    ceiling = record.weight_ceiling
    if name in before and ceiling != before[name].weight_ceiling:
        most = "no ceiling" if ceiling is None else f"at most {ceiling:g}"
        weights = f"{before[name].weight:g} -> {record.weight:g}"
        moves.append(f"{name}: weight {weights}, {most}")
    return moves + orders + ends + waits


def _later(record: InstanceRecord, before: InstanceRecord | None, now: datetime) -> list[str]:
    due_at = record.wanted_from
    if record.wanted is None or due_at is None or due_at <= now:
        return []
    if before is not None and before.wanted_from == due_at:
        return []
    wait_s = (due_at - now).total_seconds()
    return [f"{record.instance_id}: {record.wanted} is ordered in {wait_s:g} s"]
