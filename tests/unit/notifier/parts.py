"""Events and facts for the notifier's tests."""

from datetime import UTC, datetime
from typing import Any

from gatemesh_common.messages import (
    CheckLevel,
    FleetBrakeChanged,
    IncidentChanged,
    StateChanged,
    Verdict,
)
from gatemesh_notifier.facts import Fact, brake_fact, incident_fact

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def incident(**fields: Any) -> IncidentChanged:
    """Return an incident that opened."""
    known: dict[str, Any] = {
        "timestamp": NOW,
        "instance_id": "engine-0",
        "pool": "chat",
        "incident_id": "i-1",
        "incarnation": 1,
        "condition": "B",
        "status": "open",
        "reason": "hard L3 failure: nan_logits",
        "playbook": "confirm",
    }
    return IncidentChanged(**(known | fields))


def told(**fields: Any) -> Fact:
    """Return the fact of an incident."""
    return incident_fact(incident(**fields))


def brake(**fields: Any) -> FleetBrakeChanged:
    """Return a fleet brake that fell."""
    known: dict[str, Any] = {"timestamp": NOW, "pool": "chat", "status": "fell", "reason": "3 of 4"}
    return FleetBrakeChanged(**(known | fields))


def braked(**fields: Any) -> Fact:
    """Return the fact of a fleet brake."""
    return brake_fact(brake(**fields))


def state(**fields: Any) -> StateChanged:
    """Return an instance that an operator quarantined."""
    known: dict[str, Any] = {
        "timestamp": NOW,
        "instance_id": "engine-0",
        "pool": "chat",
        "incarnation": 1,
        "before": "healthy",
        "after": "quarantined",
        "trigger": "locked",
        "score": 50.0,
    }
    return StateChanged(**(known | fields))


def verdict(**fields: Any) -> Verdict:
    """Return hard proof against an instance."""
    known: dict[str, Any] = {
        "timestamp": NOW,
        "instance_id": "engine-0",
        "pool": "chat",
        "request_id": "r-1",
        "check_level": CheckLevel.L3,
        "reason": "nan_logits",
        "hard": True,
    }
    return Verdict(**(known | fields))
