"""Metrics have the names that dashboards use."""

from prometheus_client import generate_latest
from prometheus_client.registry import REGISTRY

from gatemesh_health_manager import metrics


def test_every_metric_is_registered_under_our_prefix() -> None:
    """None is lost by a typing error."""
    page = generate_latest(REGISTRY).decode()
    names = [value for name, value in vars(metrics).items() if name.isupper()]
    assert len(names) >= 15
    for metric in names:
        [family] = metric.describe()
        assert family.name.startswith("gatemesh_")
        assert f"# HELP {family.name}" in page
