"""Prometheus metrics that every service has."""

from prometheus_client import Counter

DEAD_LETTERED = Counter(
    "gatemesh_dead_lettered_total", "Messages that no handler could take, by queue.", ["queue"]
)
RETRIED = Counter("gatemesh_retried_total", "Passing faults that were retried.", ["error"])
