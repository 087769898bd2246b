"""Metrics of the notifier."""

from prometheus_client import Counter, Gauge, Histogram

EVENTS = Counter("gatemesh_notifier_events_total", "Events read, by kind.", ["kind"])
NOTIFICATIONS = Counter(
    "gatemesh_notifier_notifications_total", "Messages delivered to people.", ["target", "level"]
)
FAILED_TRIES = Counter(
    "gatemesh_notifier_failed_tries_total", "Tries that a target did not take.", ["target"]
)
UNDELIVERED = Counter(
    "gatemesh_notifier_undelivered_total",
    "Messages given up; their events are dead letters.",
    ["target"],
)
UNWRITTEN = Counter(
    "gatemesh_notifier_unwritten_total",
    "Deliveries that could not be written down; a restart may repeat them.",
)
NOT_NEWS = Counter(
    "gatemesh_notifier_not_news_total", "Events that said nothing new to a target.", ["target"]
)
WAITING = Gauge(
    "gatemesh_notifier_waiting", "Subjects that a target is yet to be told.", ["target"]
)
TARGET_UP = Gauge(
    "gatemesh_notifier_target_up", "1 when the last try was taken, 0 when not.", ["target"]
)
DELAY_SECONDS = Histogram(
    "gatemesh_notifier_delay_seconds",
    "Time from the oldest event of a message to its delivery.",
    buckets=(1, 3, 10, 30, 60, 120, 300, 600, 1800),
)
