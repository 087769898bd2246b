"""What of an event a person should know."""

import pytest
from tests.unit.notifier.parts import brake, incident, state, told, verdict

from gatemesh_notifier.facts import (
    AlertChoice,
    Level,
    alert_fact,
    brake_fact,
    incident_fact,
    state_fact,
)


@pytest.mark.parametrize(
    ("status", "level"),
    [
        ("open", Level.WARNING),
        ("held", Level.PAGE),
        ("quarantined", Level.PAGE),
        ("resolved", Level.QUIET),
        ("expired", Level.QUIET),
    ],
)
def test_the_status_weighs(status: str, level: Level) -> None:
    """Where the mesh cannot act, a person must; what is over is quiet."""
    fact = told(status=status)
    assert (fact.level, fact.word) == (level, f"incident_{status}")


@pytest.mark.parametrize(
    ("status", "level"), [("open", Level.NOTE), ("held", Level.NOTE), ("resolved", Level.QUIET)]
)
def test_observe_mode_pages_nobody(status: str, level: Level) -> None:
    """Its incidents are held by choice."""
    assert told(status=status, would="eject").level is level


def test_an_incident_keeps_its_subject_until_it_is_resolved() -> None:
    """So that one message tells of both, or the second is quiet."""
    assert told().subject == told(status="resolved").subject != told(incident_id="i-2").subject


def test_the_brake_pages_and_its_reset_is_quiet() -> None:
    """Nothing is done in the pool meanwhile."""
    fell, reset = brake_fact(brake()), brake_fact(brake(status="reset"))
    assert (fell.level, reset.level) == (Level.PAGE, Level.QUIET)
    assert fell.subject == reset.subject


def test_quarantine_and_release_have_one_subject() -> None:
    """Whether an incident or an operator led to it."""
    by_incident = incident_fact(incident(status="quarantined"))
    by_operator = state_fact(state())
    released = state_fact(state(before="quarantined", after="probation", trigger="released"))
    assert by_operator is not None
    assert released is not None
    assert by_incident.subject == by_operator.subject == released.subject
    assert (by_operator.level, released.level) == (Level.PAGE, Level.QUIET)


@pytest.mark.parametrize(
    "fields",
    [{"after": "draining"}, {"incident_id": "i-1"}, {"before": "probation", "after": "healthy"}],
)
def test_other_steps_are_told_by_incidents(fields: dict[str, str]) -> None:
    """Twice would be noise."""
    assert state_fact(state(**fields)) is None


@pytest.mark.parametrize(
    ("fields", "choice", "is_told"),
    [
        ({}, AlertChoice.HARD, True),
        ({}, AlertChoice.OFF, False),
        ({"hard": False}, AlertChoice.HARD, False),
        ({"hard": False}, AlertChoice.FAILED, True),
        ({"outcome": "passed"}, AlertChoice.FAILED, False),
        ({"attribution": "request"}, AlertChoice.FAILED, False),
    ],
)
def test_alerts_are_chosen(fields: dict[str, object], choice: AlertChoice, is_told: bool) -> None:  # noqa: FBT001
    """A failure that is the prompt's own fault accuses nobody."""
    assert (alert_fact(verdict(**fields), choice) is not None) is is_told


def test_an_alert_without_a_pool_is_of_the_default_one() -> None:
    """People who publish by hand may leave it out."""
    fact = alert_fact(verdict(pool=None), AlertChoice.HARD)
    assert fact is not None
    assert fact.pool == "default"
