"""The routing table."""

from collections.abc import Callable

from gatemesh_engine_sim.application import build_application
from gatemesh_engine_sim.service import Service


def test_every_endpoint_is_routed(make_service: Callable[..., Service]) -> None:
    """Those a client, a scraper and a drill need."""
    app = build_application(make_service())
    routed = {
        f"{route.method} {route.resource.canonical}"
        for route in app.router.routes()
        if route.resource
    }
    assert routed >= {
        "POST /v1/chat/completions",
        "POST /v1/completions",
        "POST /v1/embeddings",
        "GET /v1/models",
        "GET /health",
        "POST /ping",
        "GET /metrics",
        "POST /tokenize",
        "POST /sim/fault",
        "DELETE /sim/fault",
    }
