"""The promises that every decision keeps."""

from datetime import timedelta

import pytest

from gatemesh_common.messages import (
    Action,
    DrainInstance,
    EjectInstance,
    InstanceState,
    ReadmitInstance,
    RestartInstance,
)
from gatemesh_health_manager.ordering import NO_LIFE
from gatemesh_health_manager.playbooks import REPLACE
from gatemesh_health_manager.record import Condition, PoolFacts
from gatemesh_health_manager.states import IllegalTransitionError, Trigger

from .samples import NO_ROOM, NOW, at, case, flight, flying, in_pool, incident, record, ticket

S = InstanceState


def test_nothing_happened() -> None:
    """A case that changes nothing decides nothing."""
    decision = case(record()).decision()
    assert decision.record == record()
    assert not decision.routing_changed
    assert (decision.commands, decision.transitions, decision.incidents) == ((), (), ())


def test_states_change_by_the_table_only() -> None:
    """A wrong trigger is an error."""
    with pytest.raises(IllegalTransitionError):
        case(record(S.DRAINING)).move(Trigger.PROVEN)


def test_a_move_ends_what_the_old_state_waited_for() -> None:
    """No ticket and no deadline outlives its state."""
    one = case(record(S.PROBATION, ticket=ticket(), due_at=at(5), wanted=Action.EJECT))
    one.move(Trigger.PROBES_PASSED)
    assert (one.record.ticket, one.record.due_at, one.record.wanted) == (None, None, None)


def test_a_doubt_does_not_cancel_the_return() -> None:
    """Between the serving states, what is wanted stays wanted."""
    one = case(record(wanted=Action.READMIT, due_at=at(5)))
    one.move(Trigger.DOUBTED)
    assert (one.record.wanted, one.record.due_at) == (Action.READMIT, at(5))


PAUSED = PoolFacts(total=4, serving=4, paused=True)


@pytest.mark.parametrize(
    ("action", "condition", "sent"),
    [
        pytest.param(Action.RESTART, Condition.EXIT, False, id="restart"),
        pytest.param(Action.DRAIN, Condition.A, False, id="drain"),
        pytest.param(Action.RESTART, Condition.OPERATOR, True, id="asked-for"),
        pytest.param(Action.READMIT, Condition.EXIT, True, id="ends-no-process"),
    ],
)
def test_a_paused_pool_is_left_alone(action: Action, condition: Condition, sent: bool) -> None:  # noqa: FBT001
    """Whoever works on it finds no process stopped or started; after `resume` it goes on."""
    one = case(record(S.RESTARTING, incident=incident(condition=condition)), PAUSED)
    one.want(action)
    waiting = one.decision()
    assert [order.command.action for order in waiting.commands] == [action] * sent
    if not sent:
        [order] = case(waiting.record, after_s=9).decision().commands
        assert order.command.action is action


def test_a_wanted_command_waits_while_one_is_in_flight() -> None:
    """Never two commands in flight."""
    one = case(flying(record(S.RESTARTING), Action.DRAIN))
    one.want(Action.RESTART)
    assert one.decision().commands == ()
    one.end_flight("expired")
    [order] = one.decision().commands
    assert isinstance(order.command, RestartInstance)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Action.DRAIN, DrainInstance),
        (Action.EJECT, EjectInstance),
        (Action.RESTART, RestartInstance),
        (Action.READMIT, ReadmitInstance),
    ],
)
def test_a_command_is_whole(action: Action, kind: type) -> None:
    """Life, fence and expiry let the executor refuse what is stale."""
    one = case(record(S.RESTARTING, fence=4, incident=incident()))
    one.want(action)
    decision = one.decision()
    [order] = decision.commands
    command = order.command
    assert type(command) is kind
    assert (command.fence, command.life_id, command.incident_id) == (5, "life-1", "incident-1")
    assert command.expires_at == order.due_at > NOW
    assert decision.record.fence == 5
    flying_now = decision.record.flight
    assert flying_now is not None
    assert flying_now.command_id == command.message_id


def test_a_command_without_a_life_names_none() -> None:
    """So that a repetition does not restart what the first one started."""
    one = case(record(S.STARTING, life_id=None))
    one.want(Action.RESTART)
    assert one.decision().commands[0].command.life_id == NO_LIFE


def test_the_same_event_makes_the_same_ids() -> None:
    """A repeated transaction repeats its messages; the inbox drops the copies."""

    def ids() -> tuple[str, str]:
        one = case(record())
        one.open_incident(Condition.A, "many")
        one.condemn()
        decision = one.decision()
        return decision.incidents[0].incident_id, decision.commands[0].command.message_id

    assert ids() == ids()


def test_a_drain_names_the_first_table_without_the_instance() -> None:
    """The executor waits for agents to have applied it."""
    one = case(record())
    one.condemn()
    [order] = one.decision().commands
    assert isinstance(order.command, DrainInstance)
    assert order.command.routing_version == 8


def test_a_late_drain_names_the_present_table() -> None:
    """The table without it has been out for a while."""
    one = case(record(S.DRAINING, wanted=Action.DRAIN))
    [order] = one.decision().commands
    assert isinstance(order.command, DrainInstance)
    assert order.command.routing_version == 7


@pytest.mark.parametrize(
    ("total", "serving", "allowed"),
    [
        pytest.param(2, 2, True, id="one-of-two"),
        pytest.param(2, 1, False, id="the-last-one"),
        pytest.param(1, 1, False, id="the-only-one"),
        pytest.param(4, 3, True, id="at-half"),
        pytest.param(5, 3, False, id="past-half"),
        pytest.param(4, 2, False, id="half-is-out-already"),
    ],
)
def test_the_ejection_budget(total: int, serving: int, allowed: bool) -> None:  # noqa: FBT001
    """At most half out, never the last one."""
    assert (case(record(), PoolFacts(total, serving)).why_not_out() is None) is allowed


def test_who_serves_nobody_may_always_go() -> None:
    """The floor is about clients."""
    assert case(record(S.PROBATION), NO_ROOM).why_not_out() is None


def test_the_back_off_grows_with_each_restart() -> None:
    """0, 5, 20 seconds; the fourth within the hour is not made."""
    about, delays = record(S.RESTARTING), []
    for _ in range(3):
        one = case(about)
        one.restart()
        wanted_from = one.record.wanted_from
        assert wanted_from is not None
        delays.append((wanted_from - NOW).total_seconds())
        about = one.record
    assert delays == [0, 5, 20]
    last = case(about)
    last.restart()
    assert last.decision().record.state is S.QUARANTINED
    assert last.decision().commands == ()


def test_the_restart_budget_is_for_a_window() -> None:
    """An hour later it is whole again."""
    spent = record(S.RESTARTING, restarts=(at(-3600), at(-3599), at(-10)))
    assert case(spent).spend_restart()
    assert not case(spent, after_s=-1).spend_restart()
    # A clock that was ahead is set back: what it noted lies in the future.
    assert case(spent, after_s=-86_400).spend_restart()


def test_giving_up_ends_the_incident() -> None:
    """It is a person's now."""
    one = case(record(S.RESTARTING, incident=incident()))
    one.give_up("too often")
    [ended] = one.decision().incidents
    assert (ended.status, ended.reason, ended.ended_at) == ("quarantined", "too often", NOW)
    assert one.record.incident is None


def test_an_incident_keeps_its_id_under_a_new_heading() -> None:
    """One episode is one incident."""
    one = case(record(incident=incident(status="held")), after_s=9)
    one.open_incident(Condition.B, "proof")
    [changed] = one.decision().incidents
    assert (changed.incident_id, changed.condition) == ("incident-1", Condition.B)
    assert changed.opened_at == NOW


def test_a_new_life_starts_with_a_clean_record() -> None:
    """What the last life did is no evidence against this one."""
    one = case(record(penalty=50, evidence_since=NOW, refuted_at=NOW), after_s=5)
    one.new_life("life-2")
    fresh = one.record
    assert (fresh.incarnation, fresh.life_id, fresh.penalty) == (2, "life-2", 0)
    assert (fresh.evidence_since, fresh.refuted_at) == (None, None)


def test_a_refutation_counts_for_a_while() -> None:
    """The second proof within ten minutes is not asked about again; later it is."""
    rule = in_pool().condition_b
    for age_s, state in ((rule.reconfirm_window_s, S.RESTARTING), (601, S.EJECTED)):
        one = case(record(refuted_at=at(-age_s), incident=incident()))
        one.eject()
        assert one.record.state is state


def test_a_change_of_pool_changes_routing() -> None:
    """Both tables are published anew."""
    one = case(record())
    one.change(pool="chat")
    assert one.decision().routing_changed


def test_ending_no_flight_is_harmless() -> None:
    """A late report ends nothing."""
    one = case(record())
    one.end_flight("expired")
    assert one.decision().ends == ()
    other = case(record(flight=flight(Action.EJECT)))
    other.end_flight("expired", "late")
    assert [(end.command_id, end.outcome) for end in other.decision().ends] == [
        ("command-1", "expired")
    ]


@pytest.mark.parametrize(
    ("condition", "running", "dump_s"),
    [(Condition.B, True, 45.0), (Condition.B, False, 0.0), (Condition.A, True, 0.0)],
)
def test_a_proven_sick_life_is_dumped_before_it_ends(
    condition: Condition,
    running: bool,  # noqa: FBT001
    dump_s: float,
) -> None:
    """Where the rules give time for it, which the report gets on top."""
    about = record(S.EJECTED, running=running, incident=incident(condition=condition))
    one = case(about, policy=in_pool(condition_b={"dump_timeout_s": 45.0}))
    one.mend("confirmed")
    [order] = one.decision().commands
    assert isinstance(order.command, RestartInstance)
    assert order.command.dump_timeout_s == dump_s
    plain = case(about)
    plain.mend("confirmed")
    [usual] = plain.decision().commands
    assert order.due_at - usual.due_at == timedelta(seconds=dump_s)
    assert isinstance(usual.command, RestartInstance)
    assert usual.command.dump_timeout_s == 0


def test_an_incident_keeps_where_its_dump_lies() -> None:
    """To its end, and under another heading."""
    one = case(record(S.RESTARTING, incident=incident(condition=Condition.B)))
    one.note_core_dump("/dumps/1")
    one.note_core_dump("")
    one.open_incident(Condition.D, "worse", REPLACE)
    one.set_incident("resolved", "repaired")
    assert [each.core_dump for each in one.decision().incidents] == ["/dumps/1"]
    nothing_open = case(record())
    nothing_open.note_core_dump("/dumps/1")
    assert nothing_open.decision().incidents == ()
