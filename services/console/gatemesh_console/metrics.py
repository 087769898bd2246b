"""What the console tells Prometheus."""

from prometheus_client import Counter, Gauge

PAGES = Counter(
    "gatemesh_console_requests_total", "Requests, by route and status.", ["route", "status"]
)
SIGN_INS = Counter("gatemesh_console_sign_ins_total", "Tries to sign in, by outcome.", ["outcome"])
ASKED = Counter(
    "gatemesh_console_asked_total",
    "Requests that were published, by action and how: `try` or `ask`.",
    ["action", "how"],
)
STREAMS = Gauge("gatemesh_console_streams", "Live timelines that are open.")
