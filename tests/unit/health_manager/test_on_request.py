"""What operators may ask for."""

from typing import get_args

import pytest

from gatemesh_common.messages import Action, ActionRequest, InstanceState
from gatemesh_health_manager.on_report import on_report
from gatemesh_health_manager.on_request import REQUESTS, on_request
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord, PoolFacts

from .samples import NO_ROOM, NOW, ROOM, asked, case, flying, incident, record, report, ticket

S = InstanceState


def answered(about: InstanceRecord, action: str, pool: PoolFacts = ROOM) -> Decision:
    """Return the decision about one request."""
    one = case(about, pool)
    fields = {"weight": 0} if action == "set_weight" else {}
    on_request(one, asked(action, reason="maintenance", **fields))
    return one.decision()


def actions(decision: Decision) -> list[Action]:
    """Return what is to be done."""
    return [order.command.action for order in decision.commands]


@pytest.mark.parametrize(
    ("action", "state", "commands"),
    [
        ("drain", S.DRAINING, [Action.DRAIN]),
        ("restart", S.DRAINING, [Action.DRAIN]),
        ("eject", S.EJECTED, [Action.EJECT]),
        ("repair", S.EJECTED, [Action.EJECT]),
        ("replace", S.EJECTED, [Action.EJECT]),
        ("quarantine", S.QUARANTINED, [Action.EJECT]),
        ("roll_back", S.EJECTED, [Action.EJECT]),
    ],
)
def test_a_serving_instance_is_taken_out(action: str, state: S, commands: list[Action]) -> None:
    """Each request has its own way out, and an incident that says who asked."""
    decision = answered(record(), action)
    assert decision.record.state is state
    assert actions(decision) == commands
    assert decision.incidents[0].condition is Condition.OPERATOR
    assert "alice: maintenance" in decision.incidents[0].reason


def reset(about: InstanceRecord, backlog: str) -> Decision:
    """Return what a reset of the fleet brake does to one instance."""
    one = case(about)
    on_request(one, asked("reset_brake", instance_id=None, backlog=backlog))
    return one.decision()


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (S.DRAINING, Action.DRAIN),
        (S.EJECTED, Action.REPAIR),
        (S.RESTARTING, Action.RESTART),
        (S.REPLACING, Action.REPLACE),
    ],
)
def test_a_life_that_a_brake_kept_proves_itself(state: S, wanted: Action) -> None:
    """Skipped: its incident is closed, probes decide. Replayed: its playbook goes on."""
    about = record(state, wanted=wanted, incident=incident())
    skipped = reset(about, "skip")
    assert skipped.record.state is S.PROBATION
    assert skipped.record.ticket is not None
    assert [each.status for each in skipped.incidents] == ["expired"]
    assert actions(skipped) == []
    assert actions(reset(about, "replay")) == [wanted]


def test_a_skip_leaves_alone_what_the_brake_did_not_keep() -> None:
    """A stopped process is started, a command under way goes on, an operator's request too."""
    stopped = record(S.RESTARTING, running=False, wanted=Action.RESTART, incident=incident())
    assert actions(reset(stopped, "skip")) == [Action.RESTART]
    under_way = flying(record(S.RESTARTING, incident=incident()), Action.RESTART)
    assert reset(under_way, "skip").record == under_way
    by_hand = incident(condition=Condition.OPERATOR)
    assert actions(reset(record(S.DRAINING, wanted=Action.DRAIN, incident=by_hand), "skip")) == [
        Action.DRAIN
    ]


@pytest.mark.parametrize("action", sorted(set(REQUESTS) - {"release", "reset_brake"}))
def test_the_floor_holds_for_people_too(action: str) -> None:
    """The refusal names the setting."""
    decision = answered(record(), action, NO_ROOM)
    assert decision.record == record()
    assert "min_in_rotation is 1" in str(decision.refusal)


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (S.DRAINING, "drain"),
        (S.RESTARTING, "restart"),
        (S.PROBATION, "eject"),
        (S.PROBATION, "repair"),
        (S.REPLACING, "replace"),
        (S.QUARANTINED, "quarantine"),
        (S.HEALTHY, "release"),
        (S.STARTING, "roll_back"),
    ],
)
def test_what_the_state_does_not_allow_is_refused(state: S, action: str) -> None:
    """The refusal names the state, nothing else happens."""
    decision = answered(record(state), action)
    assert str(state) in str(decision.refusal)
    assert decision.record == record(state)


def test_nothing_is_done_to_an_instance_nobody_has_observed() -> None:
    """The executor would not know it."""
    assert "not observed" in str(answered(record(base_url=None), "restart").refusal)


def test_a_released_instance_that_runs_goes_to_probation() -> None:
    """With a fresh restart budget."""
    decision = answered(record(S.QUARANTINED, restarts=(record().state_since,) * 3), "release")
    assert decision.record.state is S.PROBATION
    assert decision.record.restarts == ()
    assert decision.commands == ()


@pytest.mark.parametrize("action", ["release", "restart"])
def test_a_stopped_instance_is_started_first(action: str) -> None:
    """Probation follows the start."""
    decision = answered(record(S.QUARANTINED, running=False), action)
    assert decision.record.state is S.RESTARTING
    assert actions(decision) == [Action.RESTART]


@pytest.mark.parametrize("running", [True, False])
def test_a_quarantined_instance_can_be_replaced(running: bool) -> None:  # noqa: FBT001
    """With a fresh restart budget."""
    about = record(S.QUARANTINED, running=running, restarts=(record().state_since,) * 3)
    decision = answered(about, "replace")
    assert decision.record.state is S.REPLACING
    assert actions(decision) == [Action.REPLACE]
    assert len(decision.record.restarts) == 1


def test_an_operator_may_repair_again() -> None:
    """Once in a life is the rule for what happens by itself."""
    about = answered(record(repaired_at=NOW), "repair").record
    one = case(about, after_s=1)
    on_report(one, report(Action.EJECT, command_id=about.flight.command_id if about.flight else ""))
    assert actions(one.decision()) == [Action.REPAIR]


def test_an_operator_takes_over_the_incident_under_way() -> None:
    """The old one ends, the new one begins; never two at a time."""
    about = record(S.EJECTED, ticket=ticket("confirm"), incident=incident())
    decision = answered(about, "quarantine")
    assert [(i.condition, i.status) for i in decision.incidents] == [
        (Condition.A, "resolved"),
        (Condition.OPERATOR, "quarantined"),
    ]


def test_a_stopped_instance_needs_no_eject_to_be_quarantined() -> None:
    """There is nothing to take out."""
    assert answered(record(S.STARTING, running=False), "quarantine").commands == ()


def weighed(about: InstanceRecord, weight: float, pool: PoolFacts = ROOM) -> Decision:
    """Return what a ceiling does."""
    one = case(about, pool)
    on_request(one, asked("set_weight", weight=weight))
    return one.decision()


def test_a_ceiling_holds_until_it_is_lifted() -> None:
    """Through restarts and quarantine; agents are told at once."""
    decision = weighed(record(), 0.3)
    assert (decision.record.weight, decision.record.weight_ceiling) == (0.3, 0.3)
    assert decision.routing_changed
    assert (decision.incidents, decision.commands) == ((), ())
    kept = answered(decision.record, "drain").record
    assert kept.weight_ceiling == 0.3
    lifted = weighed(decision.record, 1).record
    assert (lifted.weight, lifted.weight_ceiling) == (1.0, None)
    assert weighed(record(S.QUARANTINED), 0.5).record.weight_ceiling == 0.5


def test_no_traffic_at_all_is_out_of_rotation() -> None:
    """The budget holds for it, and what is out already needs no room."""
    decision = weighed(record(), 0)
    assert decision.record.weight == 0
    assert decision.record.state is S.HEALTHY
    assert answered(decision.record, "drain", NO_ROOM).refusal is None
    assert weighed(record(), 0.1, NO_ROOM).refusal is None


def test_a_quarantined_instance_is_rolled_back_by_name_only() -> None:
    """A pool's request releases nobody."""
    assert actions(answered(record(S.QUARANTINED), "roll_back")) == [Action.ROLL_BACK]
    one = case(record(S.QUARANTINED))
    on_request(one, asked("roll_back", instance_id=None))
    assert "not possible while it is quarantined" in str(one.decision().refusal)


def test_every_request_about_an_instance_has_an_answer() -> None:
    """A new action without a rule would be a crash."""
    words = set(get_args(ActionRequest.model_fields["action"].annotation))
    assert set(REQUESTS) == words - {"pause", "resume"}
