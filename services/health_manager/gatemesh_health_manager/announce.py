"""What a decision tells the world: commands to the executor, events to whoever listens."""

from collections.abc import Iterable
from datetime import datetime

from gatemesh_common.messages import FleetBrakeChanged, IncidentChanged, Message, StateChanged
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.record import Decision
from gatemesh_health_manager.routing import routing_table

Due = tuple[Message, datetime]
"""A message and the moment from which it may be sent."""


def announcements(
    fleet: Fleet, decisions: Iterable[Decision], policy_version: str, now: datetime
) -> list[Due]:
    """Return every message of some decisions; the routing tables first, they keep clients safe."""
    messages: list[Due] = [
        (routing_table(pool, fleet.versions[pool], fleet.members(pool), now), now)
        for pool in sorted(fleet.changed_routing)
    ]
    for decision in decisions:
        messages += [(order.command, now) for order in decision.commands]
        messages += [(event, now) for event in state_events(decision, now)]
        messages += [(event, now) for event in incident_events(decision, policy_version, now)]
    messages += [(event, now) for event in brake_events(fleet, now)]
    return messages


def brake_events(fleet: Fleet, now: datetime) -> list[FleetBrakeChanged]:
    """Return one event per pool whose fleet brake fell or was reset."""
    events = []
    for name, pool in fleet.pools.items():
        known = fleet.loaded.get(name)
        if pool.braked_at == (known.braked_at if known else None):
            continue
        fell = pool.braked_at is not None
        events.append(
            FleetBrakeChanged(
                timestamp=now,
                pool=name,
                status="fell" if fell else "reset",
                reason=pool.brake_reason if fell else pool.brake_reset,
                suspect_version=pool.suspect_version,
            )
        )
    return events


def state_events(decision: Decision, now: datetime) -> list[StateChanged]:
    """Return one event per transition."""
    traces = {one.incident_id: one.traceparent for one in decision.incidents}
    return [
        StateChanged(
            timestamp=now,
            instance_id=decision.record.instance_id,
            pool=decision.record.pool,
            incarnation=step.incarnation,
            before=step.before,
            after=step.after,
            trigger=step.trigger,
            incident_id=step.incident_id,
            score=round(step.score, 1),
            traceparent=traces.get(step.incident_id or ""),
        )
        for step in decision.transitions
    ]


def incident_events(
    decision: Decision, policy_version: str, now: datetime
) -> list[IncidentChanged]:
    """Return one event per incident that opened, changed or ended."""
    return [
        IncidentChanged(
            timestamp=now,
            instance_id=decision.record.instance_id,
            pool=decision.record.pool,
            incident_id=incident.incident_id,
            incarnation=incident.incarnation,
            condition=incident.name,
            status=incident.status,
            reason=incident.reason,
            policy_version=policy_version,
            would=incident.would,
            playbook=incident.playbook,
            traceparent=incident.traceparent,
        )
        for incident in decision.incidents
    ]
