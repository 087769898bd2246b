"""What a request would do is said, and nothing is done."""

import pytest

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.trial import try_out

from .samples import NOW, asked, at, incident, record

S = InstanceState


def pool(*records: InstanceRecord) -> Fleet:
    """Return a pool of these, and two healthy ones."""
    others = (record(instance_id=name) for name in ("engine-8", "engine-9"))
    return Fleet(Policy(), [PoolRecord("default", 3)], [*records, *others])


def test_states_commands_and_what_is_left_are_told() -> None:
    """The fleet stays as it is."""
    fleet = pool(record())
    before, pools = dict(fleet.records), dict(fleet.pools)
    refusal, told = try_out(fleet, asked("drain"), NOW)
    assert refusal == ""
    assert told == (
        "engine-0: healthy -> draining (condemned); engine-0: drain is ordered; "
        "2 of 3 in rotation then"
    )
    assert (fleet.records, fleet.pools) == (before, pools)


def test_what_would_wait_for_its_back_off_is_told() -> None:
    """Where the rules have even the first restart wait."""
    fleet = pool(record(S.QUARANTINED, running=False))
    fleet.policy = parse_policy("[defaults.restart]\nback_off_s = [30]\n")
    _, told = try_out(fleet, asked("release"), NOW)
    assert "restart is ordered in 30 s" in told
    fleet.records["engine-0"] = record(
        S.RESTARTING, wanted=Action.RESTART, wanted_from=at(5), incident=incident()
    )
    assert "ordered" not in try_out(fleet, asked("set_weight", weight=0.5), NOW)[1]


def test_a_refusal_says_why() -> None:
    """As the request itself would be refused."""
    fleet = pool(record(S.DRAINING, incident=incident()))
    refusal, told = try_out(fleet, asked("drain", instance_id="engine-8"), NOW)
    assert "max_out_share" in refusal
    assert told == ""


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_requests_about_pools_are_told(action: str) -> None:
    """What is paused changes no state."""
    fleet = pool()
    _, told = try_out(fleet, asked(action, instance_id=None), NOW)
    assert told.startswith(f"pool default would be {action}d; 2 of 2 in rotation")
    assert not fleet.pools["default"].paused


def test_a_reset_of_the_brake_is_told() -> None:
    """Which incidents would end, and which act."""
    held = record(incident=incident(status="held"))
    fleet = pool(held)
    fleet.pools["default"] = PoolRecord("default", 3, braked_at=NOW)
    _, told = try_out(fleet, asked("reset_brake", instance_id=None, backlog="skip"), NOW)
    assert told == "engine-0: incident expired; 3 of 3 in rotation then"
    assert fleet.pools["default"].braked_at == NOW


def test_a_ceiling_is_told() -> None:
    """With the weight that it makes."""
    fleet = pool(record())
    _, told = try_out(fleet, asked("set_weight", weight=0.4), NOW)
    assert told == "engine-0: weight 1 -> 0.4, at most 0.4; 3 of 3 in rotation then"
    _, told = try_out(
        pool(record(weight=0.4, weight_ceiling=0.4)), asked("set_weight", weight=1), NOW
    )
    assert told.startswith("engine-0: weight 0.4 -> 1, no ceiling;")
