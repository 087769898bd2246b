"""What a PromQL expression reads: names of metrics, and labels that it asks of each."""

import re
from collections.abc import Mapping, Set

from deploy.prometheus.metrics_page import all_metrics

STRINGS = re.compile(r'"[^"]*"')
RANGES = re.compile(r"\[[^\]]*\]")
GROUPINGS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"(?<![\w:.])([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\}|(?!\s*\(|[\w:]))")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
WORDS = frozenset({"and", "or", "unless", "bool", "offset"})

BY_SCRAPE = frozenset({"job", "instance", "instance_id"})
"""Labels that the configuration of Prometheus adds."""
OTHERS: Mapping[str, Set[str]] = {
    "up": frozenset(),
    "process_resident_memory_bytes": frozenset(),
    "process_cpu_seconds_total": frozenset(),
    "rabbitmq_detailed_queue_messages_ready": frozenset({"vhost", "queue"}),
    "rabbitmq_detailed_queue_messages_unacked": frozenset({"vhost", "queue"}),
    "rabbitmq_detailed_queue_consumers": frozenset({"vhost", "queue"}),
}
"""Of Prometheus itself, its client library, and RabbitMQ: `/metrics/detailed`, the families
`queue_coarse_metrics` and `queue_consumer_count`. Source: RabbitMQ 4.0's own page."""


def known_series() -> dict[str, Set[str]]:
    """Return every series that is scraped, with its labels."""
    own = {
        series: frozenset({*one.labels, *(["le"] if series.endswith("_bucket") else [])})
        for known in all_metrics().values()
        for one in known
        for series in one.series
    }
    return {**own, **OTHERS}


def selectors(expression: str) -> list[tuple[str, frozenset[str]]]:
    """Return the metrics that an expression reads, each with the labels that it matches."""
    bare = GROUPINGS.sub(" ", RANGES.sub("", STRINGS.sub('""', expression)))
    found = [(name, frozenset(LABEL.findall(inner))) for name, inner in SELECTOR.findall(bare)]
    return [(name, labels) for name, labels in found if name not in WORDS]


def grouped_by(expression: str) -> frozenset[str]:
    """Return the labels that an expression groups by."""
    lists = GROUPINGS.findall(STRINGS.sub('""', expression))
    return frozenset(word for one in lists for word in re.findall(r"\w+", one))


def faults(expression: str) -> list[str]:
    """Return what an expression reads that nobody shows."""
    series, read = known_series(), selectors(expression)
    unknown = [f"no metric {name}" for name, _ in read if name not in series]
    known = [(name, labels) for name, labels in read if name in series]
    labels = [
        f"no label {label} of {name}"
        for name, asked in known
        for label in sorted(asked - series[name] - BY_SCRAPE)
    ]
    given = BY_SCRAPE.union(*(series[name] for name, _ in known))
    groups = [f"nothing has label {label}" for label in sorted(grouped_by(expression) - given)]
    return [*unknown, *labels, *groups]
