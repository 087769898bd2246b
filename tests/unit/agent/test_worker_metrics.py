"""The metrics of several workers as those of one agent."""

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gatemesh_agent.worker_metrics import (
    OWN,
    WorkerMetrics,
    joined_by,
    read_page,
    registry_of,
)


def page(requests: int, in_flight: int, version: int) -> str:
    """Return what one worker exposes."""
    registry = CollectorRegistry()
    Counter("gatemesh_agent_requests", "R.", ["route"], registry=registry).labels(route="chat").inc(
        requests
    )
    Gauge("gatemesh_agent_in_flight", "F.", registry=registry).set(in_flight)
    Gauge("gatemesh_agent_routing_version", "V.", registry=registry).set(version)
    Histogram("gatemesh_agent_seconds", "S.", buckets=(1,), registry=registry).observe(0.5)
    return generate_latest(registry).decode()


def test_counts_are_added_and_states_are_not() -> None:
    """The agent goes by a table once all of its workers do."""
    registry = registry_of(WorkerMetrics(lambda: {0: page(3, 1, 7), 1: page(4, 2, 8)}))
    assert registry.get_sample_value("gatemesh_agent_requests_total", {"route": "chat"}) == 7
    assert registry.get_sample_value("gatemesh_agent_in_flight") == 3
    assert registry.get_sample_value("gatemesh_agent_routing_version") == 7
    assert registry.get_sample_value("gatemesh_agent_seconds_bucket", {"le": "1.0"}) == 2
    text = generate_latest(registry).decode()
    assert "# TYPE gatemesh_agent_requests_total counter" in text


def test_what_an_ended_worker_counted_is_not_lost() -> None:
    """A counter that fell would look like a new agent; a gauge of the dead says nothing."""
    pages: dict[int, str] = {0: page(3, 1, 7), 1: page(4, 2, 8)}

    def read() -> Mapping[int, str]:
        return pages

    metrics = WorkerMetrics(read)
    registry = registry_of(metrics)
    generate_latest(registry)
    metrics.ended(1)
    del pages[1]
    name, labels = "gatemesh_agent_requests_total", {"route": "chat"}
    assert registry.get_sample_value(name, labels) == 7
    assert registry.get_sample_value("gatemesh_agent_in_flight") == 1
    pages[1] = page(1, 0, 8)
    assert registry.get_sample_value(name, labels) == 8


def test_a_worker_that_ends_while_it_is_read_counts_once() -> None:
    """Its page may come when its figures are among the ended already."""
    pages: dict[int, str] = {0: page(3, 1, 7)}
    ending: list[int] = []

    def read() -> Mapping[int, str]:
        found = dict(pages)
        for index in ending:
            metrics.ended(index)
        return found

    metrics = WorkerMetrics(read)
    registry = registry_of(metrics)
    generate_latest(registry)
    ending.append(0)
    name, labels = "gatemesh_agent_requests_total", {"route": "chat"}
    assert registry.get_sample_value(name, labels) == 3
    ending.clear()
    pages[0] = page(1, 0, 8)
    assert registry.get_sample_value(name, labels) == 4


def test_the_supervisor_shows_only_what_is_its_own() -> None:
    """It serves nobody, and its zeros say nothing of the table in use."""
    registry = registry_of(WorkerMetrics(lambda: {OWN: page(0, 0, 0), 0: page(3, 1, 7)}))
    assert registry.get_sample_value("gatemesh_agent_routing_version") == 7


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("a", "counter", 3),
        ("a", "histogram", 3),
        ("a", "gauge", 2),
        ("gatemesh_agent_spool_depth", "gauge", 3),
        ("gatemesh_agent_routing_version", "gauge", 1),
        ("a_created", "gauge", 1),
    ],
)
def test_every_kind_has_its_way_to_be_joined(name: str, kind: str, found: float) -> None:
    """Counts are added, ages and versions are not."""
    assert joined_by(name, kind)(1, 2) == found


def test_a_page_is_read_with_its_labels() -> None:
    """Whatever their order."""
    text = '# TYPE a gauge\na{y="1",x="2"} 5\n'
    (family,) = read_page(text).values()
    assert family.figures == {("a", (("x", "2"), ("y", "1"))): 5.0}
