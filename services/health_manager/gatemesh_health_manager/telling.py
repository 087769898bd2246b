"""What is counted and logged of decisions, once they are committed."""

import logging
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from datetime import datetime

from gatemesh_common.messages import InstanceState, Verdict
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.metrics import (
    BRAKED,
    COMMAND_OUTCOMES,
    COMMANDS,
    INCIDENTS,
    INCIDENTS_OPEN,
    INSTANCES,
    LEADS,
    OBSERVED,
    OBSERVED_INCIDENTS,
    PAUSED,
    POLICY,
    POLICY_INVALID,
    ROTATION_SHARE,
    TICK_SECONDS,
    TRANSITIONS,
    VERDICT_DELAY_SECONDS,
    VERDICTS,
)
from gatemesh_health_manager.record import Decision, IncidentStatus
from gatemesh_health_manager.roles import Operators

log = logging.getLogger(__name__)

UNENDED: tuple[IncidentStatus, ...] = ("open", "held")
"""How an incident can stand that goes on."""


def tell_policy(version: str) -> None:
    """Say which rules are in force."""
    POLICY.clear()
    POLICY.labels(version).set(1)


def tell_operators(operators: Operators | None) -> None:
    """Say once whether requests are authorised, and how to have it so."""
    if operators is None:
        log.warning(
            "requests_not_authorised",
            extra={"cure": "name users and roles in the policy file: docs/authorisation.md"},
        )
    else:
        log.info("requests_authorised", extra={"users": sorted(operators)})


def tell_policy_fault(fault: str | None) -> None:
    """Say that the policy file cannot be used, and why; None once it can."""
    POLICY_INVALID.set(fault is not None)
    if fault is not None:
        log.error("policy_invalid", extra={"error": fault})


def tell_verdicts(verdicts: Sequence[Verdict], now: datetime) -> None:
    """Count stored verdicts, and how long they were under way."""
    for verdict in verdicts:
        VERDICT_DELAY_SECONDS.observe(max((now - verdict.timestamp).total_seconds(), 0.0))
    tally = Tally((verdict.check_level.value, verdict.outcome.value) for verdict in verdicts)
    for labels, count in tally.items():
        VERDICTS.labels(*labels).inc(count)


def tell_decisions(decisions: Iterable[Decision]) -> None:
    """Count and log what decisions changed; one event per fact."""
    for decision in decisions:
        _tell_transitions(decision)
        _tell_incidents(decision)
        _tell_commands(decision)
        for end in decision.ends:
            COMMAND_OUTCOMES.labels(decision.record.pool, end.outcome).inc()


def tell_fleet(fleet: Fleet) -> None:
    """Set how many instances of each pool are in which state, and which pools are braked."""
    LEADS.set(1)
    for pool, known in fleet.pools.items():
        BRAKED.labels(pool).set(known.braked_at is not None)
        PAUSED.labels(pool).set(known.paused)
        OBSERVED.labels(pool).set(fleet.policy.for_pool(pool).mode == "observe")
        members, facts = fleet.members(pool), fleet.facts_of(pool)
        ROTATION_SHARE.labels(pool).set(facts.serving / facts.total if facts.total else 0.0)
        states = Tally(record.state for record in members)
        for state in InstanceState:
            INSTANCES.labels(pool, state.value).set(states[state])
        statuses = Tally(record.incident.status for record in members if record.incident)
        for status in UNENDED:
            INCIDENTS_OPEN.labels(pool, status).set(statuses[status])


def tell_no_fleet() -> None:
    """Show no fleet: another manager ticks, and what was seen here before is no longer so."""
    LEADS.set(0)
    for shown in (INSTANCES, BRAKED, OBSERVED, PAUSED, ROTATION_SHARE, INCIDENTS_OPEN):
        shown.clear()


def tell_tick(seconds: float) -> None:
    """Note how long one look at every deadline took."""
    TICK_SECONDS.observe(seconds)


def tell_brakes(fleet: Fleet) -> None:
    """Say of which pools the fleet brake fell or was reset."""
    for name, pool in fleet.pools.items():
        known = fleet.loaded.get(name)
        before = known.braked_at if known else None
        if pool.braked_at == before:
            continue
        if pool.braked_at is not None:
            log.error("fleet_brake_fell", extra={"pool": name, "reason": pool.brake_reason})
        else:
            log.warning("fleet_brake_reset", extra={"pool": name, "by": pool.brake_reset})


def _tell_transitions(decision: Decision) -> None:
    record = decision.record
    for step in decision.transitions:
        TRANSITIONS.labels(record.pool, step.trigger.value).inc()
        facts = {
            "instance_id": record.instance_id,
            "incarnation": step.incarnation,
            "incident_id": step.incident_id,
            "before": step.before.value,
            "after": step.after.value,
            "trigger": step.trigger.value,
        }
        log.info("instance_moved", extra=facts)


def _tell_incidents(decision: Decision) -> None:
    record = decision.record
    for incident in decision.incidents:
        INCIDENTS.labels(record.pool, incident.name, incident.status).inc()
        if incident.would and incident.ended_at is not None:
            OBSERVED_INCIDENTS.labels(record.pool, incident.name).inc()
        facts = {
            "instance_id": record.instance_id,
            "incident_id": incident.incident_id,
            "condition": incident.name,
            "status": incident.status,
            "reason": incident.reason,
            "would": incident.would,
        }
        log.warning("incident_changed", extra=facts)


def _tell_commands(decision: Decision) -> None:
    for order in decision.commands:
        command = order.command
        COMMANDS.labels(command.pool, command.action.value).inc()
        facts = {
            "instance_id": command.instance_id,
            "incident_id": command.incident_id,
            "command_id": command.message_id,
            "action": command.action.value,
            "fence": command.fence,
        }
        log.info("command_ordered", extra=facts)
