"""The shadow's metrics."""

from prometheus_client import REGISTRY

from gatemesh_shadow.metrics import DROPPED


def test_names_carry_the_service() -> None:
    """Dashboards find them."""
    DROPPED.labels(why="test").inc()
    assert REGISTRY.get_sample_value("gatemesh_shadow_dropped_total", {"why": "test"}) == 1
