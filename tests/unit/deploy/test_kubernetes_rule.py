"""Alerts on Kubernetes are the alerts that are played."""

from pathlib import Path

import yaml
from deploy.prometheus.kubernetes_rule import ALERTS, RULE, rule_of

from .promtool import needs_promtool, promtool


def test_the_written_rule_is_of_the_present_alerts() -> None:
    """Else: python -m deploy.prometheus.kubernetes_rule."""
    assert RULE.read_text() == rule_of(ALERTS.read_text())


def test_nothing_is_lost_on_the_way() -> None:
    """Every group, every rule, every word."""
    rule = yaml.safe_load(RULE.read_text())
    assert rule["kind"] == "PrometheusRule"
    assert rule["spec"] == yaml.safe_load(ALERTS.read_text())


@needs_promtool
def test_promtool_reads_the_rule(tmp_path: Path) -> None:
    """The operator hands its `spec` to Prometheus as it is."""
    file = tmp_path / "alerts.yml"
    file.write_text(yaml.safe_dump(yaml.safe_load(RULE.read_text())["spec"]))
    assert "SUCCESS" in promtool("check", "rules", str(file))
