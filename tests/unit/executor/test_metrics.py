"""The executor's metrics."""

import subprocess
import sys

from prometheus_client import generate_latest

from gatemesh_executor.metrics import COMMANDS_ENDED, STEP_SECONDS


def test_metrics_have_no_instance_label() -> None:
    """A series per instance would grow without bound."""
    COMMANDS_ENDED.labels(action="drain", outcome="succeeded").inc(0)
    STEP_SECONDS.labels(step="stopped").observe(1)
    page = generate_latest().decode()
    assert 'gatemesh_executor_commands_total{action="drain",outcome="succeeded"}' in page
    assert 'gatemesh_executor_step_seconds_count{step="stopped"}' in page


def test_what_an_alert_waits_for_is_there_from_the_beginning() -> None:
    """A rise from nothing to one is no increase; in a process of its own, since others count."""
    code = (
        "import gatemesh_executor.metrics; from prometheus_client import generate_latest; "
        "print(generate_latest().decode())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert 'gatemesh_executor_commands_refused_total{reason="bad_signature"} 0.0' in shown.decode()
