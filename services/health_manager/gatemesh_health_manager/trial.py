"""What a request would do, in words; decided about on a copy, and never carried out."""

from collections.abc import Sequence
from datetime import datetime

from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.record import Decision


def try_out(fleet: Fleet, request: Asked, now: datetime) -> tuple[str, str]:
    """Return why a request would be refused, and what it would do; the fleet stays as it is."""
    copy = Fleet(fleet.policy, fleet.pools.values(), fleet.records.values())
    refusal, decisions = copy.answer(request, now)
    return refusal, "" if refusal else described(copy, request, decisions)


def described(fleet: Fleet, request: Asked, decisions: Sequence[Decision]) -> str:
    """Say what decisions change: states, the first command of each, and what is left to serve."""
    steps = [part for decision in decisions for part in _parts(decision)]
    if request.instance_id is None and request.action != "reset_brake":
        steps.append(f"pool {request.pool} would be {request.action}d")
    facts = fleet.facts_of(request.pool)
    left = f"{facts.serving} of {facts.total} in rotation then"
    return "; ".join([*(steps or ["nothing would change"]), left])


def _parts(decision: Decision) -> list[str]:
    name = decision.record.instance_id
    moves = [
        f"{name}: {step.before} -> {step.after} ({step.trigger})" for step in decision.transitions
    ]
    orders = [f"{name}: {order.command.action} is ordered" for order in decision.commands]
    ends = [f"{name}: incident {one.status}" for one in decision.incidents if one.ended_at]
    return moves + orders + ends
