"""Every wait has an end."""

import pytest

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.on_tick import on_tick
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord, PoolFacts

from .samples import NO_ROOM, ROOM, at, case, flying, incident, record, ticket

S = InstanceState


def ticked(about: InstanceRecord, after_s: float, pool: PoolFacts = ROOM) -> Decision:
    """Return the decision after some time."""
    one = case(about, pool, after_s=after_s)
    on_tick(one)
    return one.decision()


def test_probes_that_do_not_answer_confirm_a_proof() -> None:
    """Better one restart too many than garbage that stays."""
    about = record(S.EJECTED, ticket=ticket("confirm"), due_at=at(20), incident=incident())
    assert ticked(about, 19.9).record == about
    decision = ticked(about, 20)
    assert decision.record.state is S.RESTARTING
    assert decision.commands[0].command.action is Action.RESTART


def test_probes_that_do_not_answer_are_asked_anew_in_probation() -> None:
    """Absent agents are no evidence against an engine."""
    about = record(S.PROBATION, ticket=ticket(), due_at=at(120))
    after = ticked(about, 120).record
    assert after.state is S.PROBATION
    assert after.ticket is not None
    assert after.ticket.ticket_id != "ticket-1"
    assert after.due_at == at(240)


def test_an_instance_that_does_not_come_up_is_started() -> None:
    """After the time a start may take."""
    about = record(S.STARTING, running=False, due_at=at(300))
    decision = ticked(about, 300)
    assert decision.record.state is S.RESTARTING
    assert decision.incidents[0].condition is Condition.OVERDUE


def test_a_readmission_is_repeated() -> None:
    """A balancer that was away learns of it later."""
    decision = ticked(record(due_at=at(30)), 30)
    assert [order.command.action for order in decision.commands] == [Action.READMIT]


def test_a_command_without_a_report_is_overdue() -> None:
    """At its deadline, not before."""
    about = flying(record(S.DRAINING, incident=incident()), Action.DRAIN)
    assert ticked(about, 29.9).record == about
    assert ticked(about, 30).record.state is S.RESTARTING


def test_a_held_incident_acts_when_there_is_room() -> None:
    """A brake delays, it does not forgive."""
    about = record(incident=incident(status="held"))
    assert ticked(about, 5, NO_ROOM).record == about
    assert ticked(about, 5, PoolFacts(4, 4, paused=True)).record == about
    decision = ticked(about, 5)
    assert decision.record.state is S.DRAINING
    assert decision.incidents[0].status == "open"


def test_a_held_incident_without_evidence_left_does_not_act() -> None:
    """What failed minutes ago and works since is left alone."""
    about = record(incident=incident(status="held"))
    decision = ticked(about, 61)
    assert decision.record.state is S.HEALTHY
    assert [i.status for i in decision.incidents] == ["expired"]
    assert ticked(record(incident=incident(status="held"), penalty_at=at(1)), 61).commands != ()


@pytest.mark.parametrize(
    ("after_s", "requests", "asked"), [(10, 999, False), (31, 499, False), (31, 500, True)]
)
def test_requests_call_for_a_probe(after_s: float, requests: int, asked: bool) -> None:  # noqa: FBT001
    """Counted by the store, decided here."""
    one = case(record(probed_at=at(0)), after_s=after_s)
    on_tick(one, requests)
    assert (one.record.ticket is not None) is asked


def test_traffic_is_shifted_for_a_while_only() -> None:
    """Then the drain begins, or the incident is held."""
    about = record(
        S.SUSPECT, shift_until=at(10), weight=0.1, incident=incident(condition=Condition.C)
    )
    assert ticked(about, 9).record == about
    assert ticked(about, 10).record.state is S.DRAINING
    held = ticked(about, 10, NO_ROOM)
    assert held.record.state is S.SUSPECT
    assert held.incidents[0].status == "held"
    assert ticked(held.record, 12).record.state is S.DRAINING


def test_an_incident_while_traffic_is_shifted_is_not_given_up() -> None:
    """However old it is: the shift ends by itself."""
    about = record(
        S.SUSPECT,
        shift_until=at(4000),
        weight=0.1,
        incident=incident(condition=Condition.C, opened_at=at(-1)),
    )
    assert ticked(about, 3700).record.state is S.SUSPECT


def test_a_held_proof_ejects_when_there_is_room() -> None:
    """By its own playbook."""
    about = record(incident=incident(status="held", condition=Condition.B))
    assert ticked(about, 5).record.state is S.EJECTED


def test_a_held_incident_expires() -> None:
    """At its age, and its evidence with it."""
    about = record(incident=incident(status="held"))
    assert ticked(about, 599, NO_ROOM).record.incident is not None
    decision = ticked(about, 600, NO_ROOM)
    assert decision.incidents[0].status == "expired"
    assert decision.record.incident is None
    assert decision.record.evidence_since == at(600)


@pytest.mark.parametrize("state", [S.PROBATION, S.EJECTED, S.DRAINING, S.RESTARTING])
def test_an_incident_that_lasts_too_long_is_given_up(state: S) -> None:
    """Whatever it waits for."""
    about = record(state, incident=incident())
    assert ticked(about, 3599).record.state is state
    decision = ticked(about, 3600)
    assert decision.record.state is S.QUARANTINED
    assert decision.incidents[0].status == "quarantined"


def test_a_healed_suspect_is_cleared() -> None:
    """Above the threshold, not at it."""
    about = record(S.SUSPECT, penalty=40)
    assert ticked(about, 300).record.state is S.SUSPECT
    assert ticked(about, 301).record.state is S.HEALTHY


def test_an_accused_suspect_is_not_cleared() -> None:
    """The incident goes first."""
    about = record(S.SUSPECT, incident=incident(status="held"))
    assert ticked(about, 1, NO_ROOM).record.state is S.SUSPECT


def test_healing_changes_the_weight() -> None:
    """Agents learn of it."""
    decision = ticked(record(penalty=40, weight=0.6), 300)
    assert decision.record.weight == 0.8
    assert decision.routing_changed
