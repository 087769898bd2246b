"""The stack refuses to start where it could not go on, and says why."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.nodes import Nodes
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.plan import Addresses
from gatemesh_mesh.processes import ProcessId
from gatemesh_mesh.stack import addresses, answers_ok, report_survivors, require_space


def test_a_nearly_full_disk_is_told_before_the_start(tmp_path: Path) -> None:
    """Nothing is half written."""
    require_space(tmp_path, 1)
    with pytest.raises(MeshError, match="MB are free"):
        require_space(tmp_path, 10**18)


def test_existing_servers_are_used() -> None:
    """Nothing of ours stands in for them."""
    options = StackOptions(amqp_url="amqp://x/", database_url="postgresql://y/z")
    expected = Addresses("amqp://x/", "postgresql://y/z", None)
    assert addresses(Nodes(None, None), options) == expected


def test_a_survivor_is_named() -> None:
    """A person can end it by hand."""
    report_survivors([])
    with pytest.raises(MeshError, match="999999999"):
        report_survivors([ProcessId(999_999_999, 1)])


class Page(BaseHTTPRequestHandler):
    """Answers 200 on `/ready` and 503 elsewhere."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200 if self.path == "/ready" else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def test_only_200_is_ready() -> None:
    """A service that refuses, or is not there, is waited for."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        assert answers_ok(f"{base}/ready")
        assert not answers_ok(f"{base}/else")
        server.shutdown()
        thread.join()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert not answers_ok(f"http://127.0.0.1:{port}/")
