"""Prometheus metrics that every service has."""

from prometheus_client import Counter, Gauge, Histogram

DEAD_LETTERED = Counter(
    "gatemesh_dead_lettered_total", "Messages that no handler could take, by queue.", ["queue"]
)
RETRIED = Counter("gatemesh_retried_total", "Passing faults that were retried.", ["error"])
NEED_MISSING = Gauge(
    "gatemesh_need_missing", "1 while the service lacks something to be ready.", ["need"]
)
PUBLISH_SECONDS = Histogram(
    "gatemesh_publish_seconds",
    "Time until the broker confirmed a message.",
    ["exchange"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
PUBLISH_FAILURES = Counter(
    "gatemesh_publish_failures_total",
    "Messages that the broker did not confirm; most are sent again.",
    ["exchange", "error"],
)
QUEUE_AGE_SECONDS = Histogram(
    "gatemesh_queue_age_seconds",
    "Age of a message when its handler took it; a command that was to wait is as old as its wait.",
    ["queue"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 900, 3600),
)
