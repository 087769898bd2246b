"""The admin port, listening."""

import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry

from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.errors import SettingsError

pytestmark = pytest.mark.integration


def ask(url: str) -> tuple[int, bytes]:
    """Return status and body of a page."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 (our own port)
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_a_running_server_answers_and_ends() -> None:
    """On the loopback address, from a thread of its own."""
    with start_admin_server("127.0.0.1", 0, Readiness("database"), CollectorRegistry()) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        assert ask(f"{base}/livez") == (200, b"alive")
        assert ask(f"{base}/readyz") == (503, b"database")
        assert ask(f"{base}/nowhere") == (404, b"unknown path")
        server.shutdown()


def test_a_taken_port_is_named() -> None:
    """With the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}.*set another admin port"):
            start_admin_server("127.0.0.1", port, Readiness(), CollectorRegistry())
