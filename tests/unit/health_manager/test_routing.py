"""What agents are told."""

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.routing import routed, routing_table

from .samples import NOW, record, ticket


def test_a_row_says_what_an_agent_needs() -> None:
    """Address, state, life, weight and the probe ticket."""
    row = routed(record(InstanceState.PROBATION, ticket=ticket()))
    assert row is not None
    assert (row.base_url, row.incarnation, row.weight) == ("http://127.0.0.1:8000", 1, 0.0)
    assert row.probe == ticket()
    assert not row.in_rotation


def test_an_instance_nobody_has_observed_is_left_out() -> None:
    """There is no address to send anything to."""
    assert routed(record(base_url=None)) is None


def test_a_table_is_in_order_of_names() -> None:
    """The same state is the same table."""
    records = [record(instance_id=name) for name in ("b", "a")] + [record(base_url=None)]
    table = routing_table("default", 3, records, NOW)
    assert [row.instance_id for row in table.instances] == ["a", "b"]
    assert table.key() == "routing.v1.default"
