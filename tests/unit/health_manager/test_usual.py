"""What a history tells about durations, incidents and time out of rotation."""

from dataclasses import replace
from datetime import timedelta

from gatemesh_common.messages import Action, InstanceState, ReportOutcome
from gatemesh_health_manager.record import CommandEnd, Condition, Decision, Transition
from gatemesh_health_manager.states import Trigger
from gatemesh_health_manager.usual import (
    DEFAULT_S,
    DEFAULT_SUITE_S,
    EVIDENCE_SPAN,
    Ledger,
    Stopwatch,
    Usual,
    median_isolated_s,
)

from .samples import at, case, incident, record, ticket, verdict

S = InstanceState
OUT = Transition(S.HEALTHY, S.DRAINING, Trigger.CONDEMNED, 1, "incident-1", 70.0)
BACK = Transition(S.PROBATION, S.HEALTHY, Trigger.PROBES_PASSED, 2, "incident-1", 90.0)


def decided(*steps: Transition, **fields: object) -> Decision:
    """Return a decision with an incident."""
    return Decision(record(), steps, (incident(opened_at=at(5), **fields),))


def test_medians_are_of_what_was_seen() -> None:
    """Commands and suites that never came keep their defaults."""
    stopwatch = Stopwatch()
    assert stopwatch.usual() == Usual(DEFAULT_S, DEFAULT_SUITE_S)
    due = case(record(InstanceState.RESTARTING, wanted=Action.RESTART, incident=incident()))
    began = due.decision()
    stopwatch.note([began], at(0))
    ended = CommandEnd(began.commands[0].command.message_id, ReportOutcome.SUCCEEDED)
    stopwatch.note([Decision(began.record, ends=(ended,))], at(42))
    asked = record(ticket=ticket())
    stopwatch.note([Decision(asked)], at(50))
    stopwatch.note([Decision(replace(asked, ticket=None, closed_tickets=("ticket-1",)))], at(57))
    assert stopwatch.usual() == Usual({**DEFAULT_S, Action.RESTART: 42.0}, 7.0)


def test_isolation_is_measured_from_the_first_sign() -> None:
    """Signs long before, and of others, do not count."""
    ledger = Ledger()
    old = at(0) - EVIDENCE_SPAN
    ledger.note_signs([verdict(timestamp=old), verdict(timestamp=at(2))], at(4))
    ledger.note_signs([verdict(timestamp=at(1), instance_id="engine-1")], at(4))
    ledger.note([decided(OUT)], at(5))
    [episode] = ledger.episodes(at(0))
    assert (episode.isolated_s, episode.condition) == (3.0, "A")
    assert median_isolated_s([episode, replace(episode, isolated_s=None)]) == 3.0
    assert median_isolated_s([]) is None
    assert ledger.episodes(at(6)) == []


def test_time_out_of_rotation_ends_with_the_history() -> None:
    """Whoever is still out counts up to its end."""
    ledger = Ledger()
    ledger.note([decided(OUT)], at(5))
    assert ledger.out_s(at(15)) == 10.0
    ledger.note([decided(BACK)], at(25))
    assert ledger.out_s(at(99)) == 20.0


def test_exits_and_requests_are_no_episodes() -> None:
    """Rules do not open them."""
    ledger = Ledger()
    ledger.note([decided(OUT, condition=Condition.OPERATOR)], at(5))
    assert ledger.episodes(at(0)) == []
    assert ledger.out_s(at(6)) == 1.0


def test_a_first_start_is_no_time_out_of_rotation() -> None:
    """It had not been in it."""
    ledger = Ledger()
    ledger.note([decided(BACK)], at(5) + timedelta(seconds=100))
    assert ledger.out_s(at(500)) == 0.0
