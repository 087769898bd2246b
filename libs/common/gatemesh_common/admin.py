"""The admin port of a service: metrics, liveness and readiness, apart from client traffic."""

import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import REGISTRY

from gatemesh_common.errors import SettingsError
from gatemesh_common.metrics import NEED_MISSING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

Page = tuple[str, str, bytes]
"""Status line, content type, body."""


class Readiness:
    """Whether the service may be sent work, and what is missing when not."""

    def __init__(self, *needs: str) -> None:
        self._missing = set(needs)
        self._lock = threading.Lock()
        for need in needs:
            NEED_MISSING.labels(need=need).set(1)

    def set(self, need: str, *, met: bool) -> None:
        """Record that a need is met, or no longer is."""
        with self._lock:
            (self._missing.discard if met else self._missing.add)(need)
            NEED_MISSING.labels(need=need).set(not met)

    def missing(self) -> tuple[str, ...]:
        """Return what is missing, sorted; empty means ready."""
        with self._lock:
            return tuple(sorted(self._missing))


def admin_pages(
    readiness: Readiness, registry: CollectorRegistry = REGISTRY
) -> dict[str, Callable[[], Page]]:
    """Return the pages of the admin port by path."""

    def ready() -> Page:
        missing = readiness.missing()
        status = "503 Service Unavailable" if missing else "200 OK"
        return status, "text/plain", (", ".join(missing) or "ready").encode()

    return {
        "/livez": lambda: ("200 OK", "text/plain", b"alive"),
        "/readyz": ready,
        "/metrics": lambda: ("200 OK", "text/plain; version=0.0.4", generate_latest(registry)),
    }


def start_admin_server(
    host: str, port: int, readiness: Readiness, registry: CollectorRegistry = REGISTRY
) -> WSGIServer:
    """Serve the admin pages from a daemon thread, so that a busy event loop cannot hide them.

    Raises:
        SettingsError: the port cannot be bound.
    """
    pages = admin_pages(readiness, registry)

    def application(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        page = pages.get(environ.get("PATH_INFO", ""))
        status, kind, body = page() if page else ("404 Not Found", "text/plain", b"unknown path")
        start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    try:
        server = make_server(host, port, application, _ThreadingServer, _QuietHandler)
    except OSError as error:
        raise SettingsError(
            f"admin port {host}:{port} cannot be bound ({error.strerror}); set another admin port"
        ) from error
    threading.Thread(target=server.serve_forever, name="admin", daemon=True).start()
    return server


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep probes and scrapes out of the log."""
