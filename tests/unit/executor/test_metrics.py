"""The executor's metrics."""

from prometheus_client import generate_latest

from gatemesh_executor.metrics import COMMANDS_ENDED, STEP_SECONDS


def test_metrics_have_no_instance_label() -> None:
    """A series per instance would grow without bound."""
    COMMANDS_ENDED.labels(action="drain", outcome="succeeded").inc(0)
    STEP_SECONDS.labels(step="stopped").observe(1)
    page = generate_latest().decode()
    assert 'gatemesh_executor_commands_total{action="drain",outcome="succeeded"}' in page
    assert 'gatemesh_executor_step_seconds_count{step="stopped"}' in page
