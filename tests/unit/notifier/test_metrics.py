"""The notifier's metrics."""

from prometheus_client import REGISTRY

from gatemesh_notifier.metrics import EVENTS


def test_names_carry_the_service() -> None:
    """Dashboards find them."""
    EVENTS.labels("test").inc()
    assert REGISTRY.get_sample_value("gatemesh_notifier_events_total", {"kind": "test"}) == 1
