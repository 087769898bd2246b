"""Lives begin and end, asked for or not."""

from typing import Any

import pytest

from gatemesh_common.messages import Action, InstanceObserved, InstanceState
from gatemesh_health_manager.on_observation import on_observation
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord

from .samples import NOW, at, case, flying, incident, record, seen, ticket

S = InstanceState
UNKNOWN = record(
    S.STARTING, incarnation=0, life_id=None, running=False, base_url=None, observed_at=None
)
PRESENT = [S.HEALTHY, S.SUSPECT, S.PROBATION, S.EJECTED]
ATTENDED = [S.DRAINING, S.RESTARTING, S.QUARANTINED]


def observed(about: InstanceRecord, given: InstanceObserved) -> Decision:
    """Return the decision about one observation."""
    one = case(about, after_s=2)
    on_observation(one, given)
    return one.decision()


def test_a_first_life_goes_through_probation() -> None:
    """Nobody gets traffic unproven, not even at the first start."""
    decision = observed(UNKNOWN, seen())
    after = decision.record
    assert (after.state, after.incarnation, after.life_id) == (S.PROBATION, 1, "life-1")
    assert after.ticket is not None
    assert after.due_at == at(2 + 300 + 120)
    assert decision.incidents == ()


def test_a_stopped_instance_gets_time_to_come_up() -> None:
    """Whoever starts it may take as long as a start takes."""
    after = observed(UNKNOWN, seen(running=False, life_id=None)).record
    assert (after.state, after.incarnation, after.due_at) == (S.STARTING, 0, at(302))
    assert observed(after, seen(running=False, life_id=None, timestamp=at(2))).record.due_at == (
        at(302)
    )


@pytest.mark.parametrize("state", PRESENT)
def test_an_exit_leads_to_a_restart(state: S) -> None:
    """A dead engine leaves rotation at once, whatever its exit code."""
    decision = observed(record(state), seen(running=False, exit_code=0))
    assert decision.record.state is S.RESTARTING
    assert [order.command.action for order in decision.commands] == [Action.RESTART]
    assert decision.incidents[0].condition is Condition.EXIT


def test_an_exit_needs_no_room() -> None:
    """The last instance is gone, and is started like any other."""
    one = case(record(), after_s=2)
    one.pool = one.pool.__class__(total=1, serving=1)
    on_observation(one, seen(running=False))
    assert one.decision().record.state is S.RESTARTING


@pytest.mark.parametrize("state", ATTENDED)
def test_an_expected_exit_changes_no_state(state: S) -> None:
    """The report says how it went on."""
    decision = observed(record(state), seen(running=False))
    assert decision.record.state is state
    assert not decision.record.running
    assert decision.commands == ()


@pytest.mark.parametrize("state", ATTENDED)
def test_an_expected_life_is_numbered(state: S) -> None:
    """And waits for the report."""
    after = observed(record(state), seen(life_id="life-2")).record
    assert (after.state, after.incarnation, after.life_id) == (state, 2, "life-2")


@pytest.mark.parametrize("state", PRESENT)
def test_a_life_nobody_asked_for_goes_through_probation(state: S) -> None:
    """The backend restarted it by itself: an incident, a restart counted, probes."""
    decision = observed(record(state), seen(life_id="life-2"))
    assert [step.after for step in decision.transitions] == [S.STARTING, S.PROBATION]
    assert decision.record.incarnation == 2
    assert len(decision.record.restarts) == 1
    assert decision.incidents[0].condition is Condition.EXIT


def test_an_engine_that_restarts_for_ever_is_quarantined() -> None:
    """A crash loop behind our back is a crash loop."""
    spent = record(restarts=(NOW, NOW, NOW), incident=incident(status="held"))
    decision = observed(spent, seen(life_id="life-5"))
    assert decision.record.state is S.QUARANTINED
    assert decision.incidents[0].status == "quarantined"


def test_a_repetition_changes_nothing_but_the_moment() -> None:
    """Every few seconds the executor says the same."""
    decision = observed(record(), seen())
    assert decision.record == record(observed_at=at(1))
    assert not decision.routing_changed


@pytest.mark.parametrize("when_s", [0, -5])
def test_a_life_that_a_report_told_of_is_probed_once_it_is_observed(when_s: float) -> None:
    """An instance nobody had observed cannot get stuck."""
    told = record(S.STARTING, base_url=None, observed_at=at(when_s))
    assert observed(told, seen()).record.state is S.PROBATION


@pytest.mark.parametrize("when_s", [0, -5])
def test_an_old_observation_changes_nothing(when_s: float) -> None:
    """Shuffled observations cannot bring back an earlier life."""
    assert observed(record(), seen(life_id="life-0", timestamp=at(when_s))).record == record()


def test_a_moment_in_the_future_is_set_back() -> None:
    """A clock that runs ahead does not deafen the manager."""
    assert observed(record(), seen(timestamp=at(999))).record.observed_at == at(2)


def test_an_instance_may_move() -> None:
    """Address, version and pool follow the observation."""
    given = seen(base_url="http://127.0.0.1:9000", pool="chat", model_version="m2")
    decision = observed(record(), given)
    moved = decision.record
    assert (moved.base_url, moved.pool, moved.model_version) == (
        "http://127.0.0.1:9000",
        "chat",
        "m2",
    )
    assert decision.routing_changed


def test_an_exit_during_readmission_waits_for_its_report() -> None:
    """Never two commands in flight; out of rotation at once."""
    decision = observed(flying(record(), Action.READMIT), seen(running=False))
    assert decision.record.state is S.RESTARTING
    assert decision.commands == ()
    assert decision.record.wanted is Action.RESTART


def test_an_exit_in_probation_goes_on_with_its_incident() -> None:
    """One episode is one incident."""
    decision = observed(
        record(S.PROBATION, ticket=ticket(), incident=incident()), seen(running=False)
    )
    assert [change.incident_id for change in decision.incidents] == ["incident-1"]


def test_a_clock_set_back_does_not_deafen() -> None:
    """What was noted in the future is older than anything seen now."""
    decision = observed(record(observed_at=at(3600)), seen(running=False))
    assert decision.record.state is S.RESTARTING
    assert decision.record.observed_at == at(1)


@pytest.mark.parametrize(
    ("known", "fields", "version", "former"),
    [
        pytest.param("v1", {}, "v2", "v1", id="new"),
        pytest.param("v1", {"former_version": "v0"}, "v1", "v0", id="the-same"),
        pytest.param("unknown", {}, "v2", None, id="from-unknown"),
        pytest.param("v1", {}, "unknown", None, id="to-unknown"),
        pytest.param("v2", {"former_version": "v1", "rolled_back_at": NOW}, "v1", None, id="back"),
        pytest.param("v2", {"former_version": "v1"}, "v1", "v2", id="back-by-hand"),
    ],
)
def test_a_change_of_the_model_version_is_noted(
    known: str, fields: dict[str, Any], version: str, former: str | None
) -> None:
    """The one before is what a roll-back leads to; going back is no new version."""
    one = case(record(model_version=known, **fields), after_s=1)
    on_observation(one, seen(model_version=version))
    after = one.decision().record
    assert (after.model_version, after.former_version) == (version, former)
    assert (after.version_since == at(1)) is (former is not None and version != known)
