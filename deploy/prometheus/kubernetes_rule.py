"""Writes the alerts as the Prometheus operator of Kubernetes reads them.

python -m deploy.prometheus.kubernetes_rule
"""

import sys
from pathlib import Path
from textwrap import indent

ALERTS = Path(__file__).with_name("alerts.yml")
RULE = Path(__file__).parents[1] / "kubernetes/components/monitoring/alerts.yaml"
HEAD = """\
# Written by `python -m deploy.prometheus.kubernetes_rule` from alerts.yml; a test compares it.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gatemesh
  labels: {app.kubernetes.io/part-of: gatemesh}
spec:
"""
GROUPS = "groups:\n"


def rule_of(alerts: str) -> str:
    """Return a file of alerts as an object of Kubernetes."""
    _, _, groups = alerts.partition(GROUPS)
    return HEAD + indent(GROUPS + groups, "  ")


def main() -> None:
    """Write the file."""
    RULE.write_text(rule_of(ALERTS.read_text()))
    sys.stdout.write(f"{RULE}\n")


if __name__ == "__main__":
    main()
