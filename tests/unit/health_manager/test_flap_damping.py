"""Flap damping: an instance that comes back only to be taken out again is left to a person."""

import pytest

from gatemesh_common.messages import Action, CheckLevel, InstanceState
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.policy import FlapDamping, Policy, parse_policy

from .samples import at, case, in_pool, record
from .world import World

S = InstanceState
RULE = FlapDamping()


@pytest.mark.parametrize(
    ("outs_s", "repaired"),
    [
        pytest.param((), True, id="first"),
        pytest.param((-20, -10), True, id="one-below"),
        pytest.param((-30, -20, -10), False, id="at-the-limit"),
        pytest.param((-3600, -20, -10), True, id="one-too-old"),
        pytest.param((-3599, -20, -10), False, id="just-within"),
        pytest.param((-20, -10, 50), True, id="a-clock-that-was-set-back"),
    ],
)
def test_the_fourth_time_within_an_hour_is_too_often(
    outs_s: tuple[float, ...],
    repaired: bool,  # noqa: FBT001
) -> None:
    """This time included."""
    one = case(record(outs=tuple(at(second) for second in outs_s)))
    assert one.count_out() is repaired
    assert one.record.outs[-1] == at(0)
    assert len(one.record.outs) <= RULE.out_count


def test_damping_can_be_switched_off() -> None:
    """Then only the restart budget bounds it; what is kept stays small."""
    about = record(outs=tuple(at(-second) for second in range(60, 0, -1)))
    one = case(about, policy=in_pool(flap={"enabled": False}))
    assert one.count_out()
    assert len(one.record.outs) == RULE.out_count


def pool(policy: Policy) -> World:
    """Return three instances in rotation."""
    world = World(("a", "b", "c"), policy)
    world.start_up()
    return world


ONE_SUITE = parse_policy("[defaults.flap]\nout_count = 3\n")


def flap(world: World, times: int) -> None:
    """Have a proof that probes refute, again and again, each long after the last."""
    for _ in range(times):
        world.deliver([world.verdict("a", check_level=CheckLevel.L3, hard=True)])
        world.settle(60, step_s=5)
        world.wait(700)


def test_an_instance_that_flaps_is_quarantined() -> None:
    """No restart was ever used up: only the coming and going shows it. The process goes on."""
    world = pool(ONE_SUITE)
    flap(world, 2)
    assert world.states()["a"] is S.HEALTHY
    world.deliver([world.verdict("a", check_level=CheckLevel.L3, hard=True)])
    assert world.states()["a"] is S.QUARANTINED
    assert world.orders["a"].command.action is Action.EJECT
    assert world.engines["a"].running
    assert (world.restarts, world.open_incidents()) == ({}, [])
    ended = max(world.incidents.values(), key=lambda incident: incident.opened_at)
    assert (ended.status, ended.reason) == ("quarantined", "taken out 3 times within 3600 s")


def test_an_instance_that_flaps_slowly_is_repaired() -> None:
    """What happens once an hour is no flapping."""
    world = pool(ONE_SUITE)
    for _ in range(4):
        flap(world, 1)
        world.wait(1200)
    assert world.states()["a"] is S.HEALTHY


def test_a_release_begins_anew() -> None:
    """The person has looked."""
    world = pool(ONE_SUITE)
    flap(world, 2)
    world.deliver([world.verdict("a", check_level=CheckLevel.L3, hard=True)])
    world.obey("a")
    request = Asked(timestamp=world.now, action="release", instance_id="a", requested_by="alice")
    world._apply("a", request)
    world.settle(60, step_s=5)
    assert world.fleet.records["a"].outs == ()
    flap(world, 2)
    assert world.states()["a"] is S.HEALTHY


def test_shifting_traffic_away_is_no_time_out() -> None:
    """Condition C counts once, when the drain would begin."""
    world = pool(parse_policy("[defaults.flap]\nout_count = 2\n"))

    def disagree() -> None:
        prompts = [f"p{number}" for number in range(3)]
        world.deliver(
            [world.verdict("a", check_level="L4", prompt_fingerprint=one) for one in prompts]
        )

    disagree()
    assert world.fleet.records["a"].outs == ()
    world.wait(11)
    assert len(world.fleet.records["a"].outs) == 1
    world.settle(120, step_s=5)
    disagree()
    assert world.states()["a"] is S.SUSPECT
    world.wait(11)
    assert world.states()["a"] is S.QUARANTINED
    assert world.fleet.records["a"].shift_until is None


def test_an_operator_is_not_counted() -> None:
    """Whoever drains by hand knows what he does."""
    world = pool(ONE_SUITE)
    for _ in range(4):
        request = Asked(timestamp=world.now, action="eject", instance_id="a", requested_by="alice")
        world._apply("a", request)
        world.settle(60, step_s=5)
    assert world.fleet.records["a"].outs == ()
