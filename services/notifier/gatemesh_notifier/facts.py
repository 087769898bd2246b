"""What of an event a person should know: how weighty it is, about what, in which words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gatemesh_common.messages import (
    Attribution,
    FleetBrakeChanged,
    IncidentChanged,
    InstanceState,
    Outcome,
    StateChanged,
    Verdict,
)

DEFAULT_POOL = "default"
"""Pool of an alert that names none."""


class Level(StrEnum):
    """How weighty something is, the weightiest first."""

    PAGE = "page"
    """A person must act."""
    WARNING = "warning"
    """The mesh acts; a person should know."""
    NOTE = "note"
    """Nothing was done, and nothing need be."""
    QUIET = "quiet"
    """What was told before is over."""


WEIGHT = {level: place for place, level in enumerate(reversed(Level))}


class AlertChoice(StrEnum):
    """Which verdicts are told, besides the incidents that they lead to."""

    OFF = "off"
    HARD = "hard"
    """Proof only."""
    FAILED = "failed"
    """Every failure that is not the request's own fault."""


@dataclass(frozen=True)
class Fact:
    """One thing to tell, with what the templates may name."""

    message_id: str
    pool: str
    subject: str
    """What it is about; a later fact about the same takes the place of one not yet told."""
    level: Level
    word: str
    """The template of its line; the same word about the same subject is told once."""
    at: datetime
    instance: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    is_alert: bool = False


INCIDENT_LEVELS: dict[str, Level] = {
    "open": Level.WARNING,
    "held": Level.PAGE,
    "quarantined": Level.PAGE,
    "resolved": Level.QUIET,
    "expired": Level.QUIET,
}


def incident_fact(event: IncidentChanged) -> Fact:
    """Return what an incident says; of a pool in observe mode nothing pages."""
    level, word = INCIDENT_LEVELS[event.status], f"incident_{event.status}"
    if event.would and level is not Level.QUIET:
        level, word = Level.NOTE, "incident_observed"
    # Whoever is released later was quarantined, whatever the incident.
    quarantined = event.status == "quarantined"
    subject = quarantine_of(event.instance_id) if quarantined else f"incident:{event.incident_id}"
    return Fact(
        message_id=event.message_id,
        pool=event.pool,
        subject=subject,
        level=level,
        word=word,
        at=event.timestamp,
        instance=event.instance_id,
        values={
            "incident": event.incident_id,
            "condition": event.condition,
            "reason": event.reason,
            "playbook": event.playbook,
            "would": event.would,
        },
    )


def brake_fact(event: FleetBrakeChanged) -> Fact:
    """Return what the fleet brake says: nothing is done any more, or all goes on."""
    fell = event.status == "fell"
    return Fact(
        message_id=event.message_id,
        pool=event.pool,
        subject=f"brake:{event.pool}",
        level=Level.PAGE if fell else Level.QUIET,
        word=f"brake_{event.status}",
        at=event.timestamp,
        values={"reason": event.reason, "version": event.suspect_version},
    )


def state_fact(event: StateChanged) -> Fact | None:
    """Return that an instance was quarantined or released; incidents tell all other steps."""
    released = event.before is InstanceState.QUARANTINED
    quarantined = event.after is InstanceState.QUARANTINED and event.incident_id is None
    if not released and not quarantined:
        return None
    return Fact(
        message_id=event.message_id,
        pool=event.pool,
        subject=quarantine_of(event.instance_id),
        level=Level.QUIET if released else Level.PAGE,
        word="released" if released else "quarantined",
        at=event.timestamp,
        instance=event.instance_id,
        values={"state": event.after.value, "trigger": event.trigger},
    )


def alert_fact(verdict: Verdict, choice: AlertChoice) -> Fact | None:
    """Return what a failed verdict says; None for one that is not to be told."""
    failed = verdict.outcome is Outcome.FAILED and verdict.attribution is not Attribution.REQUEST
    wanted = choice is AlertChoice.FAILED or (choice is AlertChoice.HARD and verdict.hard)
    if not failed or not wanted:
        return None
    return Fact(
        message_id=verdict.message_id,
        pool=verdict.pool or DEFAULT_POOL,
        subject=f"alert:{verdict.instance_id}:{verdict.check_level}:{verdict.reason}",
        level=Level.WARNING,
        word="alert",
        at=verdict.timestamp,
        instance=verdict.instance_id,
        values={"gate": verdict.check_level.value, "reason": verdict.reason.value},
        is_alert=True,
    )


def quarantine_of(instance: str) -> str:
    """Return the subject that quarantine and release share."""
    return f"quarantine:{instance}"
