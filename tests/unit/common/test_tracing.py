"""Traces are switched on by their endpoint."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import ServiceSettings
from gatemesh_common.spans import NO_SPANS
from gatemesh_common.tracing import traced


def settings(endpoint: str = "") -> ServiceSettings:
    """Return settings with an endpoint."""
    return ServiceSettings(traces_endpoint=endpoint)


def test_without_an_endpoint_nothing_is_told() -> None:
    """The usual case."""
    with traced("agent", settings()) as spans:
        assert spans is NO_SPANS


def test_without_an_endpoint_nothing_is_loaded() -> None:
    """Whoever wants no traces pays nothing for them, and need not install them."""
    code = (
        "import gatemesh_agent.service, gatemesh_health_manager.store, "
        "gatemesh_executor.obeying, sys; "
        "print({'gatemesh_common.otel', 'opentelemetry.sdk.trace'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert shown.strip() == b"set()"


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the way out."""
    monkeypatch.delitem(sys.modules, "gatemesh_common.otel", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with (
        pytest.raises(SettingsError, match=r"opentelemetry is not installed.*gatemesh\[traces\]"),
        traced("agent", settings("http://127.0.0.1:1/v1/traces")),
    ):
        pass


class Collector(BaseHTTPRequestHandler):
    """Keeps what is sent to it."""

    kept: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        """Read one request, and accept it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.kept.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """Return the address of a collector, and what it has kept."""
    kept: list[ExportTraceServiceRequest] = []
    handler = type("Handler", (Collector,), {"kept": kept})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces", kept
        server.shutdown()
        thread.join()


def test_spans_reach_the_collector(
    collector: tuple[str, list[ExportTraceServiceRequest]],
) -> None:
    """At the latest when the service ends."""
    endpoint, kept = collector
    with traced("executor", settings(endpoint)) as spans:
        assert spans.on
        spans.begin("command restart", None, {"gatemesh.instance_id": "engine-0"}).end()
    names = [
        span.name
        for request in kept
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert names == ["command restart"]
