"""Events one after the other: each decision sees the last one's outcome."""

from dataclasses import replace

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.fleet import UNSEEN_FOR, Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.record import PoolFacts

from .samples import NOW, asked, at, hard, record, seen

S = InstanceState


def fleet(*names: str, state: S = S.HEALTHY) -> Fleet:
    """Return one pool of serving instances."""
    records = [record(state, instance_id=name) for name in names]
    return Fleet(Policy(), [PoolRecord("default", routing_version=4)], records)


def test_the_second_of_two_is_held() -> None:
    """Proof against both within one batch takes out one."""
    pool = fleet("a", "b")
    pool.apply("a", hard(instance_id="a"), NOW)
    pool.apply("b", hard(instance_id="b"), NOW)
    assert [pool.records[name].state for name in ("a", "b")] == [S.EJECTED, S.HEALTHY]
    held = pool.records["b"].incident
    assert held is not None
    assert held.status == "held"


def test_routing_rises_with_each_change() -> None:
    """Agents keep the highest version."""
    pool = fleet("a", "b", "c", "d")
    pool.apply("a", hard(instance_id="a"), NOW)
    assert pool.versions["default"] == 5
    pool.apply("a", seen(instance_id="a"), at(1))
    assert pool.versions["default"] == 5
    assert pool.changed_routing == {"default"}


def test_only_observed_instances_count() -> None:
    """A name in an alert is no capacity."""
    pool = fleet("a", "b")
    pool.register("ghost", "default", NOW)
    assert pool.facts_of("default") == PoolFacts(total=2, serving=2, routing_version=4)
    assert pool.records["ghost"].state is S.STARTING
    assert pool.records["ghost"].incarnation == 0


def test_an_instance_that_left_the_list_is_no_capacity() -> None:
    """It would eat the ejection budget for ever; an executor that is away hides all alike."""
    pool = fleet("a", "b", "c")
    pool.apply("a", seen(instance_id="a"), NOW)
    late = 10 + UNSEEN_FOR.total_seconds()
    pool.put(replace(pool.records["c"], state=S.QUARANTINED, observed_at=NOW))
    for name in ("a", "b"):
        pool.see(name, at(late))
    assert pool.facts_of("default").total == 2
    pool.see("c", at(late - 60))
    assert pool.facts_of("default").total == 3


def test_what_is_counted_is_counted_anew() -> None:
    """Whatever of a record changes that the facts of its pool are made of."""
    pool = fleet("a", "b")
    before = pool.facts_of("default")
    pool.put(replace(pool.records["a"], penalty=3.0, weight=0.5))
    assert pool.facts_of("default") is before
    pool.put(replace(pool.records["a"], state=S.QUARANTINED))
    assert pool.facts_of("default").serving == before.serving - 1
    pool.put(replace(pool.records["b"], pool="other"))
    assert pool.facts_of("default").total == before.total - 1


def test_registering_twice_keeps_the_record() -> None:
    """The first sight decides."""
    pool = fleet("a")
    assert pool.register("a", "other", NOW).pool == "default"


def test_pause_and_resume() -> None:
    """Judging goes on, acting waits."""
    pool = fleet("a", "b")
    pool.pause(asked("pause", instance_id=None))
    assert pool.facts_of("default").paused
    pool.apply("a", hard(instance_id="a"), NOW)
    assert pool.records["a"].serving
    pool.pause(asked("resume", instance_id=None))
    assert not pool.facts_of("default").paused


def test_moving_changes_both_pools() -> None:
    """The old one loses a row, the new one gains one."""
    pool = fleet("a", "b")
    pool.apply("a", seen(instance_id="a", pool="chat"), at(1))
    assert pool.changed_routing == {"default", "chat"}
    assert [member.instance_id for member in pool.members("chat")] == ["a"]


GUARDED = parse_policy(
    '[roles.oncall]\nactions = ["drain", "pause"]\npools = ["chat"]\n'
    '[operators]\nbob = ["oncall"]\n'
)


def guarded() -> Fleet:
    """Return two pools whose operators are named."""
    records = [
        record(instance_id=f"{pool}-{number}", pool=pool)
        for pool in ("chat", "code")
        for number in "01"
    ]
    return Fleet(GUARDED, [PoolRecord("chat", 4), PoolRecord("code", 4)], records)


def test_a_request_counts_for_the_pool_where_the_instance_is() -> None:
    """Whatever pool it names; a refused one decides nothing."""
    pools = guarded()
    lie = asked("drain", instance_id="code-0", pool="chat", proven_user="bob")
    refusal, decisions = pools.answer(lie, NOW)
    assert "none for drain in pool 'code'" in refusal
    assert decisions == []
    right = asked("drain", instance_id="chat-0", pool="code", proven_user="bob")
    assert pools.answer(right, NOW)[0] == ""
    assert pools.records["chat-0"].state is S.DRAINING


def test_a_pool_is_paused_by_those_who_may() -> None:
    """Nobody else, and nobody unproven."""
    pools = guarded()
    for pool, user in (("code", "bob"), ("chat", None), ("chat", "eve")):
        request = asked("pause", instance_id=None, pool=pool, proven_user=user)
        assert pools.answer(request, NOW)[0].startswith("not authorised")
    assert not any(pool.paused for pool in pools.pools.values())
    assert (
        pools.answer(asked("pause", instance_id=None, pool="chat", proven_user="bob"), NOW)[0] == ""
    )
    assert pools.pools["chat"].paused


def test_what_gets_no_traffic_is_not_in_rotation() -> None:
    """An operator's ceiling of 0 takes from the ejection budget what a drain would take."""
    pool = fleet("a", "b")
    assert pool.answer(asked("set_weight", instance_id="a", weight=0), NOW)[0] == ""
    assert pool.facts_of("default").serving == 1
    refusal = pool.answer(asked("set_weight", instance_id="b", weight=0), NOW)[0]
    assert "min_in_rotation is 1" in refusal
    pool.apply("b", hard(instance_id="b"), NOW)
    held = pool.records["b"].incident
    assert held is not None
    assert held.status == "held"


def test_pools_are_taken_over_as_they_are_elsewhere() -> None:
    """With what is counted of them; others stay."""
    mine, other = fleet("a", "b"), fleet("a", "b")
    mine.put(record(instance_id="c", pool="second"))
    assert mine.facts_of("default").serving == 2
    other.apply("a", hard(instance_id="a"), NOW)
    mine.take_over(other)
    assert mine.facts_of("default").serving == 1
    assert mine.versions["default"] == 5
    assert set(mine.records) == {"a", "b", "c"}
