"""Asking pages of a server that is there, and of one that is not."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gatemesh_ctl.web import fetch, page_of, side_by_side


class Pages(BaseHTTPRequestHandler):
    """Answers by the path."""

    def do_GET(self) -> None:
        """Answer with 200 or 503."""
        self.send_response(503 if self.path == "/readyz" else 200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """Give the address of a server."""
    with HTTPServer(("127.0.0.1", 0), Pages) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_pages_have_status_text_and_date(server: str) -> None:
    """Also those of a service that is not ready."""
    page = fetch(f"{server}/health")
    assert (page.status, page.text) == (200, "/health")
    assert page.date is not None
    assert page.date.tzinfo is not None
    assert fetch(f"{server}/readyz").status == 503


def test_what_is_not_there_says_why() -> None:
    """No exception, whatever the address."""
    assert "refused" in fetch("http://127.0.0.1:1/x").text
    for url in ("file:///etc/passwd", "nonsense", "http://[::1/"):
        page = fetch(url)
        assert page.status == 0
        assert page.text


def test_a_date_that_is_none_is_left_out() -> None:
    """The page is good all the same."""
    assert page_of(200, b"x", "yesterday").date is None
    assert page_of(200, b"\xff", None).text == "\ufffd"


def test_answers_keep_the_order_of_the_questions() -> None:
    """Though they are asked at once."""
    assert side_by_side(lambda number: number * 2, range(50)) == [it * 2 for it in range(50)]
