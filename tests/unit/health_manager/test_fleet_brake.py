"""The fleet brake: when it falls, what it spares, and what a person does about it."""

from typing import Any

import pytest

from gatemesh_common.messages import Action, CheckLevel, InstanceState
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet_brake import accused_lately, why_braked
from gatemesh_health_manager.policy import FleetBrake, Policy, parse_policy

from .samples import at, record
from .world import World

S = InstanceState
RULE = FleetBrake()
NAMES = ("a", "b", "c", "d")
ROOMY = parse_policy("[defaults.ejection]\nmax_out_share = 1.0\n")
"""Rules under which the ejection budget holds nothing, so that the fleet brake is what does."""


@pytest.mark.parametrize(
    ("accused", "total", "falls"),
    [
        pytest.param(3, 6, False, id="half"),
        pytest.param(4, 6, True, id="more-than-half"),
        pytest.param(2, 2, False, id="a-pool-of-two"),
        pytest.param(2, 3, False, id="two-of-three"),
        pytest.param(3, 3, True, id="all-of-three"),
    ],
)
def test_the_brake_falls_at_more_than_half(accused: int, total: int, falls: bool) -> None:  # noqa: FBT001
    """And never by fewer than three: two faults in a small pool may well be two faults."""
    assert (why_braked(accused, total, RULE) is not None) is falls


def test_the_rule_can_be_changed() -> None:
    """Switched off, or meant for a pool of two."""
    assert why_braked(9, 9, RULE.model_copy(update={"enabled": False})) is None
    assert why_braked(2, 2, RULE.model_copy(update={"min_accused": 2})) == (
        "2 of 2 instances were accused within 300 s"
    )


@pytest.mark.parametrize(
    ("accused_s", "reset_s", "counts"),
    [
        (-300, None, False),
        (-299, None, True),
        (0, None, True),
        (1, None, False),
        (-20, -20, False),
        (-20, -21, True),
        (-20, 99, False),
    ],
)
def test_an_accusation_counts_for_a_while(
    accused_s: float,
    reset_s: float | None,
    counts: bool,  # noqa: FBT001
) -> None:
    """Within the window, not after a later reset; a clock that was set back counts nothing."""
    members = [record(accused_at=at(accused_s)), record(instance_id="b")]
    reset_at = None if reset_s is None else at(reset_s)
    assert accused_lately(members, RULE, reset_at, at(0)) == ({"engine-0"} if counts else set())


# A whole pool


def pool(policy: Policy = ROOMY) -> World:
    """Return four instances in rotation."""
    world = World(NAMES, policy)
    world.start_up()
    return world


def accuse(world: World, *names: str) -> None:
    """Have one proof against each of some instances."""
    for name in names:
        world.deliver([world.verdict(name, check_level=CheckLevel.L3, hard=True)])


def held(world: World) -> list[str]:
    """Return the instances whose incidents are held."""
    return [
        name
        for name, known in world.fleet.records.items()
        if known.incident is not None and known.incident.status == "held"
    ]


def asked(world: World, action: str, **fields: Any) -> Asked:
    """Return an operator's request."""
    known = {"timestamp": world.now, "action": action, "requested_by": "alice"}
    return Asked.model_validate(known | fields)


def test_the_third_of_four_makes_it_fall() -> None:
    """The accusation that goes too far is the first to be held."""
    world = pool()
    accuse(world, "a", "b")
    assert not world.braked
    accuse(world, "c", "d")
    assert world.braked
    assert held(world) == ["c", "d"]
    known = world.fleet.pools["default"]
    assert known.brake_reason == "3 of 4 instances were accused within 300 s"
    assert known.braked_at == world.fleet.records["c"].accused_at


def test_accusations_far_apart_are_faults_of_engines() -> None:
    """One after the other, each repaired before the next."""
    world = pool()
    for name in NAMES:
        accuse(world, name)
        world.settle(200, step_s=5)
        world.wait(200)
    assert not world.braked
    assert {incident.status for incident in world.incidents.values()} == {"resolved"}


def test_an_ejected_instance_comes_back_though_the_brake_is_on() -> None:
    """Probes refute the proof: its probation decides, and nothing else changes."""
    world = pool()
    accuse(world, "a", "b", "c")
    for _ in range(4):
        for name in NAMES:
            world.obey(name)
            world.answer_probes(name)
    assert [world.states()[name] for name in ("a", "b")] == [S.HEALTHY, S.HEALTHY]
    assert world.restarts == {}
    assert held(world) == ["c"]
    assert world.fleet.records["c"].serving


def test_an_ejected_instance_that_is_bad_waits_for_the_person() -> None:
    """Probes confirm the proof: it stays out, its life is not ended, however long that takes."""
    world = pool()
    world.engines["a"].good = False
    accuse(world, "a", "b", "c")
    world.settle(7200)
    assert world.states()["a"] is S.RESTARTING
    assert world.restarts == {}
    assert world.engines["a"].running
    world.reset_brake("replay")
    world.settle(600)
    assert world.restarts["a"] > 0


def test_what_has_stopped_is_started_again() -> None:
    """A drain that was under way, and a crash: the brake must not shrink the pool."""
    world = pool()
    world.deliver([world.verdict("a") for _ in range(6)])
    accuse(world, "b", "c")
    assert world.states()["a"] is S.DRAINING
    assert world.braked
    world.crash("d")
    world.settle(120)
    assert world.states()["a"] is S.HEALTHY
    assert world.states()["d"] is S.HEALTHY
    assert world.restarts == {"a": 1, "d": 1}


def test_an_operator_is_not_braked() -> None:
    """He asks, and it is done."""
    world = pool()
    accuse(world, "a", "b", "c")
    world._apply("d", asked(world, "restart", instance_id="d"))
    world.settle(120)
    assert world.restarts["d"] == 1


def test_held_incidents_wait_as_long_as_the_person_does() -> None:
    """Nothing expires meanwhile."""
    world = pool()
    accuse(world, "a", "b", "c")
    world.settle(7200)
    assert held(world) == ["c"]


def test_skip_lets_everything_go() -> None:
    """Held incidents are closed, lives that were spared prove themselves, evidence is answered."""
    world = pool()
    world.engines["a"].good = False
    accuse(world, "a", "b", "c")
    world.settle(60)
    world.engines["a"].good = True
    assert world.states()["a"] is S.RESTARTING
    world.deliver([world.verdict("d") for _ in range(5)])
    assert world.reset_brake("skip")
    assert (world.braked, held(world)) == (False, [])
    assert world.states()["a"] is S.PROBATION
    reasons = {incident.reason for incident in world.incidents.values()}
    assert "skipped by alice after the fleet brake" in reasons
    world.deliver([world.verdict("d")])
    assert world.states()["d"] in {S.HEALTHY, S.SUSPECT}
    world.settle(60)
    assert world.states()["a"] is S.HEALTHY
    assert world.restarts == {}


def test_replay_acts_within_the_ejection_budget() -> None:
    """What has no room waits as it always does, from the reset on."""
    world = pool(parse_policy("[defaults.ejection]\nmax_out_share = 0.25\n"))
    accuse(world, *NAMES)
    assert held(world) == ["b", "c", "d"]
    world.settle(3600, step_s=5)
    world.reset_brake("replay")
    assert world.states()["b"] is S.EJECTED
    assert held(world) == ["c", "d"]
    world.settle(500, step_s=5)
    assert world.open_incidents() == []
    assert {incident.status for incident in world.incidents.values()} == {"resolved"}


def test_replay_acts_on_many_soft_failures_however_old() -> None:
    """A person has looked at them."""
    world = pool()
    accuse(world, "a", "b")
    world.deliver([world.verdict("c") for _ in range(6)])
    world.wait(3600)
    world.reset_brake("replay")
    assert world.states()["c"] is S.DRAINING


def test_only_new_accusations_make_it_fall_again() -> None:
    """Those before the reset were judged by the person."""
    world = pool()
    accuse(world, "a", "b", "c")
    world.reset_brake("skip")
    accuse(world, "d")
    assert not world.braked
    accuse(world, "c")
    assert not world.braked


def test_a_brake_that_is_not_on_cannot_be_reset() -> None:
    """Nor what was never held be replayed."""
    world = pool()
    assert not world.reset_brake("skip")


def test_traffic_that_is_shifted_away_is_held_there() -> None:
    """Condition C under way when the brake falls: no drain follows."""
    world = pool()
    world.deliver(
        [world.verdict("a", check_level="L4", prompt_fingerprint=f"p{n}") for n in range(3)]
    )
    accuse(world, "b", "c")
    world.wait(15)
    assert world.states()["a"] is S.SUSPECT
    assert "a" in held(world)
    assert Action.DRAIN not in {order.command.action for order in world.orders.values()}
    world.reset_brake("skip")
    assert world.fleet.records["a"].shift_until is None
