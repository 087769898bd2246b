"""What the manager tells of its decisions to whoever follows a trace, once they are committed."""

from collections.abc import Iterable
from datetime import datetime

from gatemesh_common.spans import Attributes, Spans
from gatemesh_health_manager.record import Decision, Incident


def tell_spans(
    spans: Spans, decisions: Iterable[Decision], begun: datetime, committed: datetime
) -> None:
    """Tell one span of each decision that has effects, and one of each incident that ended."""
    if not spans.on:
        return
    for decision in decisions:
        name, trace = heading(decision)
        if name:
            spans.past(f"decide {name}", trace, begun, committed, facts_of(decision))
        for incident in decision.incidents:
            if incident.ended_at is not None:
                spans.past(
                    f"incident {incident.name}",
                    incident.traceparent,
                    incident.opened_at,
                    incident.ended_at,
                    {**facts_of(decision), **facts_of_incident(incident)},
                )


def heading(decision: Decision) -> tuple[str, str | None]:
    """Return what was decided in a few words, and its trace; no words where nothing follows."""
    if decision.commands:
        commands = [order.command for order in decision.commands]
        return " ".join(one.action.value for one in commands), commands[0].traceparent
    if decision.incidents:
        incident = decision.incidents[0]
        return f"{incident.name} {incident.status}", incident.traceparent
    return "", None


def facts_of(decision: Decision) -> Attributes:
    """Return what to look the instance up by."""
    record = decision.record
    return {
        "gatemesh.instance_id": record.instance_id,
        "gatemesh.pool": record.pool,
        "gatemesh.incarnation": record.incarnation,
        "gatemesh.state": record.state.value,
    }


def facts_of_incident(incident: Incident) -> Attributes:
    """Return what to look an incident up by."""
    return {
        "gatemesh.incident_id": incident.incident_id,
        "gatemesh.condition": incident.name,
        "gatemesh.status": incident.status,
    }
