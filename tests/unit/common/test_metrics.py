"""Metrics that every service has."""

from prometheus_client import generate_latest

from gatemesh_common.metrics import DEAD_LETTERED, PUBLISH_FAILURES, RETRIED


def test_labels_are_bounded() -> None:
    """Queue names and error classes: no instance makes a series of its own."""
    assert DEAD_LETTERED._labelnames == ("queue",)
    assert RETRIED._labelnames == ("error",)
    assert PUBLISH_FAILURES._labelnames == ("exchange", "error")


def test_they_are_exported_under_our_name() -> None:
    """Dashboards find them."""
    DEAD_LETTERED.labels(queue="q").inc()
    text = generate_latest().decode()
    assert 'gatemesh_dead_lettered_total{queue="q"}' in text
