"""A restart that waits for its back-off is a wish: nothing is ordered before it is due."""

from dataclasses import replace
from typing import Any

import pytest
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_common.messages import Action, CommandReport, InstanceState, ReportOutcome
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.history import History
from gatemesh_health_manager.inputs import InputKind, is_due, tick_one
from gatemesh_health_manager.ordering import NO_LIFE
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.record import Condition, Decision, Flight, InstanceRecord
from gatemesh_health_manager.replaying import Replay

from .samples import asked, at, incident, record, report, seen

S = InstanceState
BACK_OFF_S = 5
"""Before the second restart within the window, by the rules as they are delivered."""
OBSERVING = parse_policy('[defaults]\nmode = "observe"\n')


class Waiting:
    """An instance whose second restart was decided just now, in a pool with two others."""

    def __init__(self, action: Action = Action.RESTART, **about: Any) -> None:
        others = [record(instance_id=name) for name in ("engine-8", "engine-9")]
        first = {
            "state": S.REPLACING if action is Action.REPLACE else S.RESTARTING,
            "incident": incident(),
            "target_life": "life-1",
            "restarts": (at(-60),),
            "flight": Flight("command-1", action, at(500)),
            "fence": 1,
        }
        known = record(**(first | about))
        self.fleet = Fleet(Policy(), [PoolRecord("default")], [known, *others])
        self.sent: list[tuple[float, Action]] = []
        failed = report(action, ReportOutcome.FAILED, life_id=known.life_id)
        self._take(self.fleet.apply("engine-0", failed, at(0)), 0)

    @property
    def record(self) -> InstanceRecord:
        """What is known of the instance."""
        return self.fleet.records["engine-0"]

    def see(self, at_s: float, **fields: Any) -> None:
        """Have the executor look at it."""
        self._take(self.fleet.apply("engine-0", seen(timestamp=at(at_s), **fields), at(at_s)), at_s)

    def ask(self, action: str, at_s: float, **fields: Any) -> None:
        """Have a person ask for something; he must not be refused."""
        request: Asked = asked(action, timestamp=at(at_s), **fields)
        refusal, decisions = self.fleet.answer(request, at(at_s))
        assert refusal == ""
        for decision in decisions:
            self._take(decision, at_s)

    def tick(self, *moments_s: float) -> None:
        """Let time pass."""
        for at_s in moments_s:
            self._take(tick_one(self.fleet, "engine-0", 0, at(at_s)), at_s)

    def is_due(self, at_s: float) -> bool:
        """Return whether a tick would lock the pool."""
        pools, records = self.fleet.pools.values(), self.fleet.records.values()
        return is_due(Fleet(self.fleet.policy, pools, records), "default", {}, at(at_s))

    def _take(self, decision: Decision, at_s: float) -> None:
        if decision.record.instance_id == "engine-0":
            self.sent += [(at_s, order.command.action) for order in decision.commands]


@pytest.mark.parametrize("action", [Action.RESTART, Action.REPLACE])
def test_what_waits_is_ordered_by_the_tick_that_finds_it_due(action: Action) -> None:
    """Once, and neither before nor by an observation meanwhile."""
    waiting = Waiting(action)
    waiting.tick(1, 4.9)
    waiting.see(4.95)
    assert (waiting.sent, waiting.record.wanted) == ([], action)
    waiting.tick(BACK_OFF_S, 6, 60)
    assert waiting.sent == [(BACK_OFF_S, action)]
    assert (waiting.record.wanted, waiting.record.wanted_from) == (None, None)


def test_a_tick_is_due_at_that_moment() -> None:
    """A pool in which somebody only waits is not locked."""
    waiting = Waiting()
    assert not waiting.is_due(4.9)
    assert waiting.is_due(BACK_OFF_S)
    waiting.tick(BACK_OFF_S)
    assert not waiting.is_due(6)


def test_a_command_has_its_whole_time_from_its_issue() -> None:
    """Its expiry and its end, as if nothing had waited."""
    waiting = Waiting()
    decision = tick_one(waiting.fleet, "engine-0", 0, at(9))
    [order] = decision.commands
    assert order.command.timestamp == at(9)
    assert order.command.expires_at == order.due_at
    assert decision.record.flight == Flight(
        order.command.message_id, order.command.action, order.due_at
    )
    rule = waiting.fleet.policy.defaults.restart
    assert order.due_at == at(9 + rule.grace_s + rule.start_timeout_s + rule.margin_s)


def test_a_quarantined_instance_is_not_restarted() -> None:
    """A person has withdrawn it; he finds it as it was."""
    waiting = Waiting()
    waiting.ask("quarantine", 2)
    waiting.tick(3, BACK_OFF_S, 60, 3600)
    assert waiting.sent == [(2, Action.EJECT)]
    assert (waiting.record.state, waiting.record.wanted_from) == (S.QUARANTINED, None)


def test_a_quarantined_one_that_has_stopped_stays_so() -> None:
    """Nothing is to be taken out either."""
    waiting = Waiting(running=False)
    waiting.ask("quarantine", 2)
    waiting.tick(3, BACK_OFF_S, 60)
    assert waiting.sent == []
    assert (waiting.record.wanted, waiting.record.wanted_from) == (None, None)


def test_a_release_begins_anew() -> None:
    """With a budget of its own, so without a back-off; what waited before is gone."""
    waiting = Waiting(running=False)
    waiting.ask("quarantine", 1)
    waiting.ask("release", 2)
    waiting.tick(3, BACK_OFF_S, 60)
    assert waiting.sent == [(2, Action.RESTART)]
    assert waiting.record.restarts == (at(2),)


@pytest.mark.parametrize("running", [True, False])
def test_a_paused_pool_is_left_alone_until_it_is_resumed(running: bool) -> None:  # noqa: FBT001
    """Then what is still wanted is ordered, once."""
    waiting = Waiting(running=running)
    waiting.ask("pause", 2, instance_id=None)
    assert not waiting.is_due(BACK_OFF_S)
    waiting.tick(3, BACK_OFF_S, 60)
    assert waiting.sent == []
    waiting.ask("resume", 70, instance_id=None)
    waiting.tick(71, 72)
    assert waiting.sent == [(71, Action.RESTART)]


def test_a_resumed_pool_still_waits_for_the_back_off() -> None:
    """A short pause shortens nothing."""
    waiting = Waiting()
    waiting.ask("pause", 1, instance_id=None)
    waiting.ask("resume", 2, instance_id=None)
    waiting.tick(3, BACK_OFF_S, 6)
    assert waiting.sent == [(BACK_OFF_S, Action.RESTART)]


def test_what_a_person_asked_for_goes_on_in_a_paused_pool() -> None:
    """His restart failed once, and is tried again."""
    waiting = Waiting(incident=incident(condition=Condition.OPERATOR))
    waiting.ask("pause", 2, instance_id=None)
    waiting.tick(BACK_OFF_S)
    assert waiting.sent == [(BACK_OFF_S, Action.RESTART)]


def test_the_fleet_brake_keeps_a_life_that_waits_for_its_end() -> None:
    """A reset that skips has it prove itself; nothing waits any more then."""
    waiting = Waiting()
    pool = waiting.fleet.pools["default"]
    waiting.fleet.pools["default"] = replace(pool, braked_at=at(1), brake_reason="most accused")
    waiting.fleet._facts.clear()
    waiting.tick(BACK_OFF_S, 60)
    assert waiting.sent == []
    waiting.ask("reset_brake", 70, instance_id=None, backlog="skip")
    waiting.tick(71, 100)
    assert waiting.record.state is S.PROBATION
    assert waiting.sent == []


def test_observe_mode_has_a_life_serve_that_waits_for_its_end() -> None:
    """It is not restarted; the balancers are told."""
    waiting = Waiting()
    waiting.fleet.policy = OBSERVING
    waiting.see(8)
    waiting.tick(9, 60)
    assert waiting.record.state is S.HEALTHY
    assert [action for _, action in waiting.sent] == [Action.READMIT]


def test_a_roll_back_does_not_wait_for_what_only_waits_itself() -> None:
    """It is about the same process, and begins on a fresh budget."""
    waiting = Waiting()
    waiting.ask("roll_back", 2)
    waiting.tick(BACK_OFF_S, 60)
    assert waiting.sent == [(2, Action.ROLL_BACK)]


def test_what_waits_too_long_is_given_up() -> None:
    """The incident's age bounds it; nothing is ordered afterwards."""
    waiting = Waiting(running=False)
    waiting.ask("pause", 2, instance_id=None)
    waiting.tick(3601)
    waiting.ask("resume", 3602, instance_id=None)
    waiting.tick(3603, 3700)
    assert waiting.record.state is S.QUARANTINED
    assert waiting.sent == []


def test_a_life_that_began_meanwhile_is_not_what_is_restarted() -> None:
    """The command names the life that it was decided about, whatever runs by then."""
    waiting = Waiting(running=False)
    waiting.see(2, life_id="life-2")
    [order] = tick_one(waiting.fleet, "engine-0", 0, at(BACK_OFF_S)).commands
    assert (order.command.life_id, order.command.incarnation) == ("life-1", 2)


def test_a_first_life_that_began_meanwhile_is_kept_too() -> None:
    """An instance that had none is to get one, no more."""
    waiting = Waiting(
        running=False,
        life_id=None,
        target_life=None,
        incident=incident(condition=Condition.OVERDUE),
    )
    waiting.see(2, life_id="life-1")
    [order] = tick_one(waiting.fleet, "engine-0", 0, at(BACK_OFF_S)).commands
    assert order.command.life_id == NO_LIFE


def test_the_budget_counts_what_was_decided_once() -> None:
    """Neither its wait nor its issue counts again; the fourth is not made."""
    waiting = Waiting(restarts=(at(-60), at(-30)))
    assert waiting.record.restarts == (at(-60), at(-30), at(0))
    waiting.tick(20)
    assert waiting.record.restarts == (at(-60), at(-30), at(0))
    [(_, action)] = waiting.sent
    flight = waiting.record.flight
    assert flight is not None
    failed = report(action, ReportOutcome.FAILED, command_id=flight.command_id, life_id="life-1")
    decision = waiting.fleet.apply("engine-0", failed, at(30))
    assert decision.record.state is S.QUARANTINED


@pytest.mark.parametrize("seed", range(3))
def test_waits_are_replayed_alike(seed: int) -> None:
    """Engines that die again and again, people who quarantine and pause: every step comes again."""
    pool = MadeUpPool(("engine-0", "engine-1", "engine-2"), seed=seed)
    pool.live(30, 5)
    for _ in range(5):
        for engine in pool.engines.values():
            engine.running = False
        pool.live(60, 5)
    found = repeat(pool.recorder.history(), DAWN)
    assert (found.differences, found.changed_outside) == ([], [])
    assert (InputKind.TICK, Action.RESTART) in ordered(pool.recorder.history())


def ordered(history: History) -> set[tuple[InputKind, Action]]:
    """Return which inputs of a history have had which commands sent."""
    replay = Replay(history.policies)
    replay.begin(history.begin, history.earlier)
    return {
        (given.input.kind, order.command.action)
        for given in history.inputs
        for decision in replay.take(given.input, given.verdicts)
        for order in decision.commands
    }


def test_a_command_of_an_earlier_release_ends_as_it_did() -> None:
    """Ordered when it was decided, it is in flight, whenever it is sent; its report is awaited."""
    about = record(
        S.RESTARTING,
        incident=incident(),
        target_life="life-1",
        restarts=(at(-60), at(0)),
        flight=Flight("command-2", Action.RESTART, at(400)),
        fence=2,
    )
    fleet = Fleet(Policy(), [PoolRecord("default")], [about])
    assert tick_one(fleet, "engine-0", 0, at(6)).commands == ()
    fleet.apply("engine-0", seen(timestamp=at(30), life_id="life-2"), at(30))
    done: CommandReport = report(
        Action.RESTART, command_id="command-2", timestamp=at(31), life_id="life-2"
    )
    assert fleet.apply("engine-0", done, at(31)).record.state is S.PROBATION
