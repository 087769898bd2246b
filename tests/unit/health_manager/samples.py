"""Values that the tests of the manager start from."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gatemesh_common.messages import (
    Action,
    CheckLevel,
    CommandReport,
    InstanceObserved,
    InstanceState,
    ProbeTicket,
    ReportOutcome,
    Verdict,
)
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.record import (
    Condition,
    Flight,
    Incident,
    InstanceRecord,
    PoolFacts,
)

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
POLICY = PoolPolicy()
ROOM = PoolFacts(total=4, serving=4, routing_version=7)
"""A pool in which one instance may go."""
NO_ROOM = PoolFacts(total=1, serving=1, routing_version=7)
S = InstanceState
SERVED = (S.HEALTHY, S.SUSPECT)


def at(seconds: float) -> datetime:
    """Return the moment some seconds after `NOW`."""
    return NOW + timedelta(seconds=seconds)


def record(state: InstanceState = S.HEALTHY, **fields: Any) -> InstanceRecord:
    """Return an instance in its first life, observed and running."""
    known: dict[str, Any] = {
        "instance_id": "engine-0",
        "pool": "default",
        "state": state,
        "state_since": NOW,
        "penalty_at": NOW,
        "incarnation": 1,
        "life_id": "life-1",
        "running": True,
        "base_url": "http://127.0.0.1:8000",
        "observed_at": NOW,
        "weight": 1.0 if state in SERVED else 0.0,
    }
    return InstanceRecord(**(known | fields))


def incident(**fields: Any) -> Incident:
    """Return an open incident by condition A."""
    known: dict[str, Any] = {
        "incident_id": "incident-1",
        "incarnation": 1,
        "condition": Condition.A,
        "status": "open",
        "opened_at": NOW,
        "cause": "many",
        "reason": "many",
        "playbook": "restart",
    }
    return Incident(**(known | fields))


def flight(action: Action, due_in_s: float = 30) -> Flight:
    """Return a command in flight."""
    return Flight("command-1", action, at(due_in_s))


def ticket(purpose: Any = "probation") -> ProbeTicket:
    """Return a probe ticket."""
    return ProbeTicket(ticket_id="ticket-1", purpose=purpose)


def case(
    about: InstanceRecord, pool: PoolFacts = ROOM, policy: PoolPolicy = POLICY, after_s: float = 0
) -> Case:
    """Open a case about an instance."""
    return Case(about, pool, policy, at(after_s), "cause-1")


def verdict(level: CheckLevel = CheckLevel.L1, **fields: Any) -> Verdict:
    """Return a soft failure of the present life."""
    known: dict[str, Any] = {
        "timestamp": NOW,
        "instance_id": "engine-0",
        "request_id": "request-1",
        "check_level": level,
        "incarnation": 1,
    }
    return Verdict(**(known | fields))


def hard(**fields: Any) -> Verdict:
    """Return a proof."""
    return verdict(CheckLevel.L3, hard=True, reason="nan_logits", **fields)


def probe_result(outcome: str, ticket_id: str = "ticket-1", **fields: Any) -> Verdict:
    """Return the result of a probe suite."""
    return verdict(CheckLevel.L5, request_id=ticket_id, outcome=outcome, **fields)


def report(action: Action, outcome: ReportOutcome = ReportOutcome.SUCCEEDED, **fields: Any) -> Any:
    """Return the report of the command in flight."""
    known: dict[str, Any] = {
        "timestamp": at(1),
        "instance_id": "engine-0",
        "command_id": "command-1",
        "action": action,
        "incarnation": 1,
        "fence": 1,
        "outcome": outcome,
    }
    return CommandReport(**(known | fields))


def seen(*, running: bool = True, life_id: str | None = "life-1", **fields: Any) -> Any:
    """Return an observation a second after `NOW`."""
    known: dict[str, Any] = {
        "timestamp": at(1),
        "instance_id": "engine-0",
        "base_url": "http://127.0.0.1:8000",
        "running": running,
        "life_id": life_id,
    }
    return InstanceObserved(**(known | fields))


def asked(action: Any, **fields: Any) -> Asked:
    """Return an operator's request."""
    known: dict[str, Any] = {
        "timestamp": NOW,
        "action": action,
        "instance_id": "engine-0",
        "requested_by": "alice",
    }
    return Asked(**(known | fields))


def in_pool(**changes: Any) -> PoolPolicy:
    """Return the default rules with single sections changed."""
    sections = {
        name: getattr(POLICY, name).model_copy(update=values) for name, values in changes.items()
    }
    return POLICY.model_copy(update=sections)


def flying(about: InstanceRecord, action: Action) -> InstanceRecord:
    """Return an instance that waits for a command."""
    return replace(about, flight=flight(action), fence=1)
