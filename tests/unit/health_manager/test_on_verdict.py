"""Evidence, probes, and what is ignored."""

from typing import Any

import pytest

from gatemesh_common.messages import Action, CheckLevel, InstanceState, Verdict
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.on_verdict import on_verdict
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord, PoolFacts

from .samples import (
    NO_ROOM,
    NOW,
    ROOM,
    at,
    case,
    hard,
    incident,
    probe_result,
    record,
    ticket,
    verdict,
)

S = InstanceState
SIX = Facts(6, 6)
PAUSED = PoolFacts(total=4, serving=4, paused=True)


def judged(
    about: InstanceRecord,
    given: Verdict,
    facts: Facts = NO_FACTS,
    pool: PoolFacts = ROOM,
    after_s: float = 0,
) -> Decision:
    """Return the decision about one verdict."""
    one = case(about, pool, after_s=after_s)
    on_verdict(one, given, facts)
    return one.decision()


def commands(decision: Decision) -> list[Action]:
    """Return what is to be done."""
    return [order.command.action for order in decision.commands]


def test_the_fifth_failure_does_nothing() -> None:
    """At the limit nothing happens but the score."""
    decision = judged(record(), verdict(), Facts(5, 5))
    assert decision.record.state is S.HEALTHY
    assert (decision.incidents, decision.commands) == ((), ())


def test_the_sixth_failure_drains() -> None:
    """One past the limit: out, drained, with an incident by condition A."""
    decision = judged(record(), verdict(), SIX)
    assert decision.record.state is S.DRAINING
    assert decision.routing_changed
    assert commands(decision) == [Action.DRAIN]
    assert decision.incidents[0].condition is Condition.A


def test_a_hard_failure_ejects_at_once() -> None:
    """Out, and the probes are asked."""
    decision = judged(record(), hard())
    assert decision.record.state is S.EJECTED
    assert commands(decision) == [Action.EJECT]
    assert decision.record.ticket is not None
    assert decision.record.ticket.purpose == "confirm"
    assert decision.record.due_at == at(20)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(verdict(incarnation=0), id="earlier-life"),
        pytest.param(verdict(incarnation=2), id="life-unknown-here"),
        pytest.param(verdict(outcome="passed"), id="passed"),
        pytest.param(verdict(outcome="skipped"), id="skipped"),
        pytest.param(verdict(timestamp=at(-30)), id="answered-already"),
    ],
)
def test_what_is_no_evidence_changes_nothing(given: Verdict) -> None:
    """Stored, and no more."""
    about = record(evidence_since=at(-10))
    assert judged(about, given, SIX).record == about


def test_an_alert_without_a_life_means_the_present_one() -> None:
    """People do not know incarnations."""
    assert judged(record(), verdict(incarnation=None), SIX).record.state is S.DRAINING


@pytest.mark.parametrize("state", [s for s in S if s not in {S.HEALTHY, S.SUSPECT}])
def test_outside_rotation_evidence_only_lowers_the_score(state: S) -> None:
    """What is out already cannot be taken out again."""
    decision = judged(record(state), hard(), SIX)
    assert decision.record.state is state
    assert decision.record.penalty > 0
    assert decision.commands == ()


@pytest.mark.parametrize("pool", [NO_ROOM, PAUSED], ids=["no-room", "paused"])
def test_a_brake_holds_the_incident(pool: PoolFacts) -> None:
    """The alert is there, nothing is done."""
    decision = judged(record(), hard(), pool=pool)
    assert decision.record.serving
    assert decision.incidents[0].status == "held"
    assert decision.commands == ()


def test_a_held_incident_takes_on_the_graver_condition() -> None:
    """Proof after evidence is not lost, and a repetition changes nothing."""
    held = judged(record(), verdict(), SIX, NO_ROOM).record
    graver = judged(held, hard(), pool=NO_ROOM)
    assert [i.condition for i in graver.incidents] == [Condition.B]
    assert judged(graver.record, verdict(), SIX, NO_ROOM).incidents == ()
    assert judged(graver.record, hard(), pool=NO_ROOM).incidents == ()


def test_a_low_score_makes_a_suspect() -> None:
    """Soft L3 failures alone take nothing out."""
    about = record(penalty=26)
    decision = judged(about, verdict(CheckLevel.L3))
    assert decision.record.state is S.SUSPECT
    assert decision.commands == ()
    assert judged(record(penalty=25), verdict(CheckLevel.L3)).record.state is S.HEALTHY


def test_passed_probes_refute_a_proof() -> None:
    """One bad prompt costs no restart; a fresh suite decides about the return."""
    about = record(S.EJECTED, ticket=ticket("confirm"), incident=incident(condition=Condition.B))
    decision = judged(about, probe_result("passed"), after_s=3)
    assert decision.record.state is S.PROBATION
    assert decision.record.ticket is not None
    assert decision.record.ticket.ticket_id != "ticket-1"
    assert decision.commands == ()
    back = judged(
        decision.record,
        probe_result("passed", decision.record.ticket.ticket_id, timestamp=at(4)),
        after_s=4,
    )
    assert back.record.state is S.HEALTHY
    assert (back.incidents[0].status, back.incidents[0].reason) == ("resolved", "refuted")


def test_failed_probes_confirm_a_proof() -> None:
    """Restart."""
    about = record(S.EJECTED, ticket=ticket("confirm"), incident=incident(condition=Condition.B))
    decision = judged(about, probe_result("failed"))
    assert decision.record.state is S.RESTARTING
    assert commands(decision) == [Action.RESTART]


def test_passed_probes_readmit() -> None:
    """Back in rotation, the incident is over, old evidence is answered."""
    about = record(S.PROBATION, ticket=ticket(), incident=incident(), penalty=70)
    decision = judged(about, probe_result("passed"))
    assert decision.record.state is S.HEALTHY
    assert commands(decision) == [Action.READMIT]
    assert (decision.incidents[0].status, decision.incidents[0].reason) == ("resolved", "repaired")
    assert decision.record.evidence_since == NOW
    assert decision.record.weight == 0.3
    assert decision.record.readmitted_at == NOW


def test_failed_probes_restart_a_first_start_too() -> None:
    """An instance that was never good gets an incident of its own."""
    decision = judged(record(S.PROBATION, ticket=ticket()), probe_result("failed"))
    assert decision.record.state is S.RESTARTING
    assert decision.incidents[0].condition is Condition.PROBES


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"outcome": "skipped"}, id="skipped"),
        pytest.param({"outcome": "passed", "ticket_id": "another"}, id="another-ticket"),
        pytest.param({"outcome": "passed", "incarnation": 7}, id="another-life"),
        pytest.param({"outcome": "passed", "check_level": "L1"}, id="another-gate"),
    ],
)
def test_what_does_not_end_a_ticket(fields: dict[str, Any]) -> None:
    """The instance goes on waiting."""
    about = record(S.PROBATION, ticket=ticket())
    assert judged(about, probe_result(**fields)).record == about


def test_the_first_result_wins() -> None:
    """A second agent's result finds no ticket."""
    about = record(S.PROBATION, ticket=ticket())
    first = judged(about, probe_result("passed")).record
    assert judged(first, probe_result("passed")).record == first


def test_a_ticket_may_be_named_in_the_details() -> None:
    """Probes that have request ids of their own still count."""
    given = probe_result("passed", "own-id", details={"ticket_id": "ticket-1"})
    assert judged(record(S.PROBATION, ticket=ticket()), given).record.state is S.HEALTHY
