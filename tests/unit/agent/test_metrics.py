"""Metrics have the names that dashboards use."""

import subprocess
import sys

from prometheus_client import generate_latest
from prometheus_client.registry import REGISTRY

from gatemesh_agent import metrics


def test_every_metric_is_registered_under_our_prefix() -> None:
    """None is lost by a typing error."""
    page = generate_latest(REGISTRY).decode()
    names = [value for name, value in vars(metrics).items() if name.isupper()]
    assert len(names) >= 15
    for metric in names:
        [family] = metric.describe()
        assert family.name.startswith("gatemesh_agent_")
        assert f"# HELP {family.name}" in page


def test_what_an_alert_waits_for_is_there_from_the_beginning() -> None:
    """A rise from nothing to one is no increase; in a process of its own, since others count."""
    code = (
        "import gatemesh_agent.metrics; from prometheus_client import generate_latest; "
        "print(generate_latest().decode())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert (
        'gatemesh_agent_rejected_total{cause="no_instance",rerouted="False"} 0.0' in shown.decode()
    )
