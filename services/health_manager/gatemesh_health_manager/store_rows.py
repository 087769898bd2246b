"""Rows and records: how what the manager knows is written down, and read again."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gatemesh_common.messages import (
    Action,
    CommandReport,
    InstanceState,
    Message,
    ProbeTicket,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    Verdict,
)
from gatemesh_common.trace import usable
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.facts import evidence_time, prompt_key
from gatemesh_health_manager.record import (
    CommandEnd,
    CommandOrder,
    Condition,
    Decision,
    Flight,
    Incident,
    InstanceRecord,
    Transition,
)
from gatemesh_health_manager.storable import Row, storable, storable_text, storable_words
from gatemesh_health_manager.streaks import Streak, Streaks

SAME_NAME = (
    "instance_id",
    "pool",
    "state_since",
    "penalty",
    "penalty_at",
    "incarnation",
    "life_id",
    "running",
    "base_url",
    "model_version",
    "observed_at",
    "evidence_since",
    "refuted_at",
    "readmitted_at",
    "accused_at",
    "repaired_at",
    "fence",
    "wanted_from",
    "target_life",
    "due_at",
    "ticket_until",
    "probed_at",
    "probe_from",
    "shift_until",
    "weight",
    "weight_ceiling",
    "former_version",
    "version_since",
    "rolled_back_at",
)
"""Fields of an instance that are stored as they are."""


def instance_row(record: InstanceRecord) -> Row:
    """Return the row of an instance."""
    flight, ticket = record.flight, record.ticket
    return {name: getattr(record, name) for name in SAME_NAME} | {
        "state": record.state.value,
        "wanted_action": record.wanted,
        "flight_command_id": flight.command_id if flight else None,
        "flight_action": flight.action if flight else None,
        "flight_due_at": flight.due_at if flight else None,
        "ticket_id": ticket.ticket_id if ticket else None,
        "ticket_purpose": ticket.purpose if ticket else None,
        "closed_tickets": list(record.closed_tickets),
        "restarts": list(record.restarts),
        "outs": list(record.outs),
        "streaks": streaks_json(record.streaks),
    }


def read_instance(row: Mapping[str, Any], incident: Incident | None) -> InstanceRecord:
    """Return the record of a row."""
    flight = row["flight_command_id"] and Flight(
        row["flight_command_id"], Action(row["flight_action"]), row["flight_due_at"]
    )
    ticket = row["ticket_id"] and ProbeTicket(
        ticket_id=row["ticket_id"], purpose=row["ticket_purpose"]
    )
    return InstanceRecord(
        **{name: row[name] for name in SAME_NAME},
        state=InstanceState(row["state"]),
        wanted=Action(row["wanted_action"]) if row["wanted_action"] else None,
        flight=flight or None,
        ticket=ticket or None,
        closed_tickets=tuple(row["closed_tickets"]),
        restarts=tuple(row["restarts"]),
        outs=tuple(row["outs"]),
        streaks=read_streaks(row["streaks"]),
        incident=incident,
    )


def streaks_json(streaks: Streaks) -> Row:
    """Return the streaks of a life as JSON."""
    own = {name: streak_json(streak) for name, streak in streaks.own}
    return {"c": streak_json(streaks.c), "d": streak_json(streaks.d), "own": own}


def read_streaks(stored: Mapping[str, Any]) -> Streaks:
    """Return the streaks of their JSON; those that were never stored are empty."""
    own = {name: read_streak(streak) for name, streak in stored.get("own", {}).items()}
    c, d = (read_streak(stored.get(name, {})) for name in ("c", "d"))
    return Streaks(c, d, tuple(sorted(own.items())))


def streak_json(streak: Streak) -> Row:
    """Return a streak as JSON."""
    return {
        "passed_at": streak.passed_at and streak.passed_at.isoformat(),
        "failures": [[at.isoformat(), storable(prompt)] for at, prompt in streak.failures],
    }


def read_streak(stored: Mapping[str, Any]) -> Streak:
    """Return the streak of its JSON; one that was never stored is empty."""
    passed_at = stored.get("passed_at")
    failures = stored.get("failures", ())
    return Streak(
        datetime.fromisoformat(passed_at) if passed_at else None,
        tuple((datetime.fromisoformat(at), prompt) for at, prompt in failures),
    )


def incident_row(incident: Incident, record: InstanceRecord, policy_version: str) -> Row:
    """Return the row of an incident."""
    return {
        "incident_id": incident.incident_id,
        "instance_id": record.instance_id,
        "pool": record.pool,
        "incarnation": incident.incarnation,
        "condition": incident.name,
        "status": incident.status,
        "playbook": incident.playbook,
        "steps": list(incident.steps),
        "cause": storable(incident.cause),
        "reason": storable(incident.reason),
        "would": storable(incident.would),
        "core_dump": storable(incident.core_dump),
        "traceparent": incident.traceparent,
        "policy_version": policy_version,
        "opened_at": incident.opened_at,
        "ended_at": incident.ended_at,
    }


def condition_of(name: str) -> Row:
    """Return the condition that is stored by its name."""
    if name in set(Condition):
        return {"condition": Condition(name)}
    return {"condition": Condition.OWN, "own_name": name}


def read_incident(row: Mapping[str, Any]) -> Incident:
    """Return the incident of a row."""
    return Incident(
        incident_id=row["incident_id"],
        incarnation=row["incarnation"],
        **condition_of(row["condition"]),
        status=row["status"],
        opened_at=row["opened_at"],
        cause=row["cause"],
        reason=row["reason"],
        playbook=row["playbook"],
        steps=tuple(row["steps"]),
        would=row["would"],
        core_dump=row["core_dump"],
        traceparent=row["traceparent"],
        ended_at=row["ended_at"],
    )


def transition_row(
    step: Transition, record: InstanceRecord, policy_version: str, now: datetime
) -> Row:
    """Return the row of a transition."""
    return {
        "instance_id": record.instance_id,
        "pool": record.pool,
        "incarnation": step.incarnation,
        "before_state": step.before.value,
        "trigger": step.trigger.value,
        "after_state": step.after.value,
        "incident_id": step.incident_id,
        "score": step.score,
        "policy_version": policy_version,
        "at": now,
    }


def command_row(order: CommandOrder, now: datetime) -> Row:
    """Return the row of a command that is now in flight."""
    command = order.command
    return {
        "command_id": command.message_id,
        "instance_id": command.instance_id,
        "pool": command.pool,
        "incarnation": command.incarnation,
        "action": command.action.value,
        "fence": command.fence,
        "life_id": command.life_id,
        "incident_id": command.incident_id,
        "status": "in_flight",
        "reason": "",
        "issued_at": now,
        "available_at": now,
        "due_at": order.due_at,
        "ended_at": None,
    }


def command_end_row(end: CommandEnd, now: datetime) -> Row:
    """Return what the end of a command changes, for an update by `the_command`."""
    return {
        "the_command": end.command_id,
        "status": str(end.outcome),
        "reason": storable(end.reason),
        "ended_at": now,
    }


VERDICT_NAMES = (
    "message_id",
    "instance_id",
    "pool",
    "incarnation",
    "request_id",
    "check_level",
    "outcome",
    "reason",
    "hard",
    "score",
    "threshold",
    "type",
    "model_version",
    "choice",
    "prompt_key",
    "tenant",
    "decoding",
    "attribution",
    "gate_version",
    "span",
    "details",
    "timestamp",
    "counted_at",
    "received_at",
    "traceparent",
)


def verdict_values(verdict: Verdict, record: InstanceRecord, now: datetime) -> tuple[Any, ...]:
    """Return a verdict's values in order of `VERDICT_NAMES`.

    One without incarnation or pool takes on the present ones.
    """
    named = verdict.incarnation
    words = (
        verdict.request_id,
        verdict.type,
        verdict.model_version,
        prompt_key(verdict),
        verdict.tenant,
        verdict.gate_version,
    )
    request_id, kind, model_version, prompt, tenant, gate_version = storable_words(words)
    span = verdict.span.model_dump(exclude_none=True) if verdict.span else None
    return (
        verdict.message_id,
        verdict.instance_id,
        record.pool,
        record.incarnation if named is None else named,
        request_id,
        str(verdict.check_level),
        str(verdict.outcome),
        str(verdict.reason),
        verdict.hard,
        verdict.score,
        verdict.threshold,
        kind,
        model_version,
        verdict.choice,
        prompt,
        tenant,
        str(verdict.decoding),
        str(verdict.attribution),
        gate_version,
        None if span is None else storable_text(span),
        storable_text(verdict.details),
        verdict.timestamp,
        evidence_time(verdict, now),
        now,
        usable(verdict.traceparent),
    )


def report_row(report: CommandReport) -> Row:
    """Return the row of a command's report."""
    return {
        "message_id": report.message_id,
        "command_id": report.command_id,
        "instance_id": report.instance_id,
        "outcome": report.outcome.value,
        "reason": storable(report.reason),
        "life_id": report.life_id,
        "killed": report.killed,
        "duration_s": report.duration_s,
        "at": report.timestamp,
    }


def refused_row(report: CommandReport, now: datetime) -> Row:
    """Return the row of a command that was refused, whoever had sent it."""
    reason, _, detail = str(storable(report.reason)).partition(": ")
    return {
        "message_id": report.message_id,
        "command_id": storable(report.command_id),
        "instance_id": storable(report.instance_id),
        "pool": storable(report.pool),
        "action": report.action.value,
        "incarnation": report.incarnation,
        "fence": report.fence,
        "reason": reason,
        "detail": detail,
        "ends_command": report.ends_command,
        "at": report.timestamp,
        "received_at": now,
    }


def step_row(step: StepFinished) -> Row:
    """Return the row of a command's step."""
    return _fields(
        step, "message_id", "command_id", "instance_id", "incident_id", "incarnation", "step"
    ) | {"duration_s": step.duration_s, "at": step.timestamp}


def rejected_row(rejected: RequestRejected) -> Row:
    """Return the row of a refused client request."""
    names = ("message_id", "request_id", "instance_id", "pool", "incarnation", "agent_id")
    return _fields(rejected, *names, "cause", "rerouted_to") | {"at": rejected.timestamp}


def telemetry_row(window: TelemetryWindow) -> Row:
    """Return the row of a telemetry window."""
    names = ("message_id", "agent_id", "instance_id", "pool", "incarnation")
    counts = ("requests", "client_errors", "server_errors", "tokens", "unguarded", "in_flight")
    moments = ("window_start", "window_end")
    sketches = [sketch.model_dump(mode="json") for sketch in window.sketches]
    return _fields(window, *names, *moments, *counts) | {
        "gates": storable({str(k): v.model_dump() for k, v in window.gates.items()}),
        "sketches": storable(sketches) or None,
        "first_tokens": {str(place): count for place, count in window.first_tokens.items()} or None,
    }


def request_row(request: Asked, refusal: str, now: datetime, note: str = "") -> Row:
    """Return the row of an operator's request; an empty refusal means that it was followed.

    The note says more of one that was.
    """
    names = ("message_id", "action", "pool", "instance_id")
    return _fields(request, *names) | {
        "requested_by": storable(request.requested_by),
        "user_id": storable(request.proven_user),
        "reason": storable(request.reason),
        "requested_at": request.timestamp,
        "outcome": "refused" if refusal else "accepted",
        "why": refusal or note,
        "decided_at": now,
        "dry_run": False,
    }


def note_of(request: Asked, decisions: Sequence[Decision]) -> str:
    """Return what the history says of a request that was followed, beyond its fields."""
    if request.backlog:
        return f"backlog: {request.backlog}"
    if request.weight is not None:
        return "no ceiling" if request.weight == 1 else f"weight at most {request.weight:g}"
    if request.action == "roll_back":
        begun = [one.record for one in decisions if one.refusal is None]
        return "; ".join(f"{one.instance_id} ({one.model_version})" for one in begun)
    return ""


def _fields(message: Message, *names: str) -> Row:
    return {name: storable(getattr(message, name)) for name in names}
