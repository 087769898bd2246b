"""Which instance gets a request."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.routing import PoolView, Router, bootstrap, choose, view_of
from gatemesh_common.messages import InstanceState, RoutedInstance, RoutingTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def instance(
    name: str, weight: float = 1.0, state: InstanceState = InstanceState.HEALTHY
) -> RoutedInstance:
    """Return one instance of a table."""
    return RoutedInstance(
        instance_id=name, base_url=f"http://{name}", state=state, incarnation=1, weight=weight
    )


def router(*instances: RoutedInstance) -> Router:
    """Return a router over the instances."""
    return Router(Random(1), 1.0, PoolView(1, NOON, instances))


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.tuples(st.integers(0, 9), st.floats(0.1, 1)), min_size=1
    ),
    st.integers(),
)
def test_the_least_loaded_for_its_weight_is_chosen(
    loads: dict[str, tuple[int, float]], seed: int
) -> None:
    """Nobody else is less loaded for its weight."""
    candidates = [instance(name, weight) for name, (_, weight) in loads.items()]
    chosen = choose(candidates, {name: count for name, (count, _) in loads.items()}, Random(seed))
    assert chosen is not None
    busy = {name: count / weight for name, (count, weight) in loads.items()}
    assert busy[chosen.instance_id] == min(busy.values())


def test_chance_spreads_equals() -> None:
    """A quiet pool does not send everything to its first instance."""
    pool = router(instance("a"), instance("b"), instance("c"))
    picks = [pool.pick(0.0) for _ in range(100)]
    assert {one.instance_id for one in picks if one} == {"a", "b", "c"}


def test_weights_share_the_load() -> None:
    """An instance of weight a quarter gets about a quarter of another's requests."""
    pool = router(instance("a"), instance("b", weight=0.25))
    for _ in range(100):
        chosen = pool.pick(0.0)
        assert chosen is not None
        pool.enter(chosen.instance_id)
    assert 79 <= pool.in_flight["a"] <= 81


def test_a_quiet_pool_shares_by_weight() -> None:
    """A doubted instance still gets requests: else nothing could convict or clear it."""
    pool = router(instance("a"), instance("b", weight=0.5))
    picks = [pool.pick(0.0) for _ in range(900)]
    share = sum(one is not None and one.instance_id == "b" for one in picks) / len(picks)
    assert 0.28 < share < 0.39


@pytest.mark.parametrize("state", [s for s in InstanceState if s not in ("healthy", "suspect")])
def test_states_out_of_rotation_get_nothing(state: InstanceState) -> None:
    """Only healthy and suspect instances serve clients."""
    assert router(instance("a", state=state)).pick(0.0) is None


def test_weight_zero_gets_nothing() -> None:
    """The manager keeps new requests away so."""
    assert router(instance("a", weight=0.0)).pick(0.0) is None


def test_what_was_tried_is_not_picked_again() -> None:
    """A second try goes elsewhere."""
    pool = router(instance("a"), instance("b"))
    assert pool.pick(0.0, ["a"]) == instance("b")
    assert pool.pick(0.0, ["a", "b"]) is None


def test_a_shunned_instance_is_the_last_choice_for_a_while() -> None:
    """It is still taken when there is no other."""
    pool = router(instance("a"), instance("b"))
    pool.shun("a", 10.0)
    assert {pool.pick(10.9), pool.pick(10.5)} == {instance("b")}
    assert pool.pick(10.9, ["b"]) == instance("a")
    assert instance("a") in [pool.pick(11.0) for _ in range(50)]


def test_an_answer_goes_on_at_a_healthy_instance_if_there_is_one() -> None:
    """One that is suspect, or lately refused, only if there is none."""
    suspect = instance("b", state=InstanceState.SUSPECT)
    pool = router(instance("a"), suspect, instance("c"))
    assert pool.relief(0.0, ["a"]) == instance("c")
    assert pool.relief(0.0, ["a", "c"]) == suspect
    pool.shun("c", 10.0)
    assert pool.relief(10.5, ["a"]) == suspect
    assert pool.relief(10.5, ["a", "b"]) == instance("c")
    assert pool.relief(10.5, ["a", "b", "c"]) is None


def test_any_table_replaces_the_bootstrap() -> None:
    """Settings only count until the manager is heard."""
    pool = Router(Random(1), 1.0, bootstrap({"a": "http://a"}))
    assert pool.pick(0.0) is not None
    assert pool.replace(PoolView(1, NOON, ()))
    assert pool.pick(0.0) is None


def test_a_sidecar_sees_only_its_instance() -> None:
    """The others of the pool are not its business."""
    table = RoutingTable(
        timestamp=NOON, pool="p", version=3, instances=(instance("a"), instance("b"))
    )
    assert view_of(table, ["b"]).instances == (instance("b"),)
    assert view_of(table).instances == (instance("a"), instance("b"))


def test_an_instance_that_is_gone_is_out() -> None:
    """Absent and out of rotation are the same to a request under way."""
    pool = router(instance("a"), instance("b", state=InstanceState.DRAINING))
    assert (pool.is_out("a"), pool.is_out("b"), pool.is_out("c")) == (False, True, True)


def test_requests_under_way_are_counted() -> None:
    """Enter and leave balance."""
    pool = router(instance("a"))
    pool.enter("a")
    pool.enter("a")
    pool.leave("a")
    assert pool.in_flight["a"] == 1


def test_one_is_shunned_for_a_while() -> None:
    """And then no longer."""
    router = Router(Random(1), 2.0)
    router.shun("a", 10.0)
    assert [router.is_shunned("a", at) for at in (10.0, 11.9, 12.0)] == [True, True, False]
    assert not router.is_shunned("b", 10.0)
