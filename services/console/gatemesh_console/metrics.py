"""What the console tells Prometheus."""

from prometheus_client import Counter, Gauge

PAGES = Counter(
    "gatemesh_console_requests_total", "Requests, by page and status.", ["page", "status"]
)
SIGN_INS = Counter("gatemesh_console_sign_ins_total", "Tries to sign in, by outcome.", ["outcome"])
ASKED = Counter(
    "gatemesh_console_asked_total",
    "Requests that were published, by action and whether only tried.",
    ["action", "dry_run"],
)
STREAMS = Gauge("gatemesh_console_streams", "Live timelines that are open.")
