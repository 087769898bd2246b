"""Going back to the model version before."""

from dataclasses import replace
from typing import Any

import pytest

from gatemesh_common.messages import Action, CheckLevel, InstanceState, ReportOutcome
from gatemesh_health_manager.on_report import on_report
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.record import Condition, InstanceRecord, PoolFacts
from gatemesh_health_manager.rolling_back import go_on_rolling_back, roll_back_by_rule
from gatemesh_health_manager.trial import try_out

from .samples import NO_ROOM, NOW, POLICY, ROOM, asked, at, case, flying, in_pool, incident, record
from .samples import report as reported
from .world import World

S = InstanceState
NAMES = ("a", "b", "c", "d")
ACTING = parse_policy('[defaults.fleet_brake]\nroll_back = "act"\n')
OFFERING = parse_policy("")


def waiting(state: S, **fields: Any) -> InstanceRecord:
    """Return an instance that is to be rolled back."""
    status = "held" if state in (S.HEALTHY, S.SUSPECT) else "open"
    about = incident(condition=Condition.OPERATOR, playbook="roll_back", status=status)
    return record(state, incident=about, **fields)


@pytest.mark.parametrize(
    ("state", "after", "action"),
    [
        (S.HEALTHY, S.EJECTED, Action.EJECT),
        (S.SUSPECT, S.EJECTED, Action.EJECT),
        *[
            (state, S.RESTARTING, Action.ROLL_BACK)
            for state in (S.PROBATION, S.EJECTED, S.DRAINING, S.RESTARTING, S.REPLACING)
        ],
    ],
)
def test_every_state_has_its_way(state: S, after: S, action: Action) -> None:
    """What serves is taken out first; what is out is rolled back at once."""
    one = case(waiting(state))
    go_on_rolling_back(one)
    decision = one.decision()
    assert decision.record.state is after
    assert [order.command.action for order in decision.commands] == [action]


@pytest.mark.parametrize(
    ("about", "pool"),
    [
        pytest.param(waiting(S.HEALTHY), NO_ROOM, id="no-room"),
        pytest.param(flying(waiting(S.RESTARTING), Action.RESTART), ROOM, id="a-command-flies"),
    ],
)
def test_it_waits_for_what_is_under_way(about: InstanceRecord, pool: PoolFacts) -> None:
    """Nothing changes meanwhile."""
    one = case(about, pool)
    go_on_rolling_back(one)
    assert one.decision().record == about


def by_rule(about: InstanceRecord, **pool: Any) -> InstanceRecord:
    """Return what the rules make of an instance of a braked pool."""
    facts = replace(ROOM, braked=True, braked_at=NOW, suspect_version="v2", **pool)
    one = case(about, facts, in_pool(fleet_brake={"roll_back": "act"}), after_s=1)
    roll_back_by_rule(one)
    return one.decision().record


@pytest.mark.parametrize(
    "about",
    [
        pytest.param(record(model_version="v1"), id="another-version"),
        pytest.param(record(S.QUARANTINED, model_version="v2"), id="quarantined"),
        pytest.param(record(model_version="v2", rolled_back_at=at(0)), id="tried-since"),
        pytest.param(
            record(
                S.DRAINING,
                model_version="v2",
                incident=incident(condition=Condition.OPERATOR, playbook="stop"),
            ),
            id="a-person-acts",
        ),
    ],
)
def test_the_rules_leave_alone(about: InstanceRecord) -> None:
    """What does not run the version, was tried, or is in a person's hands."""
    assert by_rule(about) == about


def test_the_rules_roll_back_what_is_accused_and_what_is_not() -> None:
    """The version is to blame; the incident under way is taken over."""
    held = record(model_version="v2", incident=incident(status="held"))
    for about in (
        held,
        record(model_version="v2"),
        record(model_version="v2", rolled_back_at=at(-1)),
    ):
        after = by_rule(about)
        assert after.state is S.EJECTED
        assert after.incident is not None
        assert after.incident.condition is Condition.ROLL_BACK
    assert by_rule(held, paused=True) == held


def test_what_cannot_be_rolled_back_is_not_ended() -> None:
    """It proves itself on the version that it has, and the incident tells why."""
    about = flying(
        replace(waiting(S.RESTARTING), target_life="life-1", rolled_back_at=NOW), Action.ROLL_BACK
    )
    one = case(about, after_s=1)
    failed = reported(
        Action.ROLL_BACK,
        ReportOutcome.FAILED,
        reason="roll_back_not_offered: none",
        life_id="life-1",
    )
    on_report(one, failed)
    decision = one.decision()
    assert decision.record.state is S.PROBATION
    assert [each.status for each in decision.incidents] == ["expired"]
    assert decision.incidents[0].reason == "not rolled back: roll_back_not_offered: none"
    assert decision.commands == ()


def test_a_start_that_fails_goes_on_as_a_restart() -> None:
    """The switch was tried, and a life must run."""
    about = flying(
        replace(waiting(S.RESTARTING, running=False), target_life="life-1", rolled_back_at=NOW),
        Action.ROLL_BACK,
    )
    one = case(about, after_s=1)
    on_report(one, reported(Action.ROLL_BACK, ReportOutcome.FAILED, reason="start_failed: 1"))
    assert [order.command.action for order in one.decision().commands] == [Action.RESTART]


# A whole pool


def new_version(policy: Policy, bad: tuple[str, ...] = NAMES) -> World:
    """Return four instances in rotation, some of which got a new model version lately."""
    world = World(NAMES, policy)
    world.start_up()
    world.settle(60, step_s=5)
    for name in bad:
        engine = world.engines[name]
        engine.version, engine.good = "v2", False
        world.observe(name)
    return world


def accuse(world: World, *names: str) -> None:
    """Have one proof against each."""
    for name in names:
        world.deliver([world.verdict(name, check_level=CheckLevel.L3, hard=True)])


def test_a_new_version_is_named_and_the_way_back_offered() -> None:
    """By the fleet brake; nothing is done."""
    world = new_version(OFFERING)
    accuse(world, *NAMES)
    pool = world.fleet.pools["default"]
    assert pool.suspect_version == "v2"
    assert pool.brake_reason == (
        "3 of 4 instances were accused within 300 s; most of them run 'v2', which came after 'v1' "
        "lately; to roll it back: gatemesh-ctl request roll_back --pool default --model-version v2"
    )
    world.settle(120)
    assert not world.roll_backs


def test_the_rules_roll_a_version_back_within_the_budget() -> None:
    """Each instance once, never more than half of the pool out; the brake waits for its person."""
    world = new_version(ACTING)
    accuse(world, *NAMES)
    for _ in range(40):
        world.wait(5)
        for name in NAMES:
            world.observe(name)
            world.obey(name)
            world.answer_probes(name)
    assert dict(world.roll_backs) == dict.fromkeys(NAMES, 1)
    assert set(world.states().values()) == {S.HEALTHY}
    assert {engine.version for engine in world.engines.values()} == {"v1"}
    assert world.braked
    assert world.fleet.records["a"].former_version is None, "a way back is no new version"
    assert not world.open_incidents()


@pytest.mark.parametrize(
    ("rule", "after_s", "changed"),
    [
        pytest.param('roll_back = "off"', 0, NAMES, id="off"),
        pytest.param("roll_back_within_s = 100", 101, NAMES, id="not-new-any-more"),
        pytest.param("", 0, ("d",), id="not-what-most-run"),
    ],
)
def test_nothing_is_offered(rule: str, after_s: float, changed: tuple[str, ...]) -> None:
    """Where the rules do not want it, or no new version is to blame."""
    world = new_version(parse_policy(f"[defaults.fleet_brake]\n{rule}\n"), changed)
    world.wait(after_s)
    accuse(world, *NAMES)
    pool = world.fleet.pools["default"]
    assert world.braked
    assert pool.suspect_version == ""
    assert "roll" not in pool.brake_reason


def test_a_person_rolls_a_pool_back() -> None:
    """All that run the version that came last, though the brake is on; each as there is room."""
    world = new_version(OFFERING, ("a", "b", "c"))
    accuse(world, "a", "b", "c")
    request = asked("roll_back", instance_id=None, timestamp=world.now)
    refusal, decisions = world.fleet.answer(request, world.now)
    for decision in decisions:
        world._note(decision.record.instance_id, decision)
    assert refusal == ""
    assert [one.record.instance_id for one in decisions] == ["a", "b", "c"]
    world.settle(600, step_s=5)
    assert dict(world.roll_backs) == {"a": 1, "b": 1, "c": 1}
    assert {one.status for one in world.open_incidents()} <= {"held"}


def test_a_version_to_leave_must_run_somewhere() -> None:
    """The refusal names those that do."""
    world = new_version(OFFERING, ())
    for version, told in ((None, "name the one to leave: v1"), ("v7", "versions: v1")):
        request = asked("roll_back", instance_id=None, model_version=version)
        assert told in world.fleet.answer(request, world.now)[0]
    asked_for = asked("roll_back", instance_id=None, model_version="v1")
    refusal, said = try_out(world.fleet, asked_for, world.now)
    assert refusal == ""
    assert "a: healthy -> ejected (proven); b: healthy -> ejected" in said.replace(
        "; a: eject is ordered", ""
    )
    assert "c: waits for room" in said
    assert POLICY.ejection.max_out_share == 0.5
