"""The benchmark of the console says what it measured."""

import http.server
import threading
from collections.abc import Iterator

import pytest
from benchmarks.console_pages import PAGES, Measured, main


class Site(http.server.BaseHTTPRequestHandler):
    """Knows one token, and answers every page."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Sign in."""
        known = b"token=right" in self.rfile.read(int(self.headers["content-length"]))
        self.send_response(303 if known else 403)
        if known:
            self.send_header("set-cookie", "s=1; HttpOnly")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """Answer whoever is signed in."""
        self.send_response(200 if self.headers["cookie"] == "s=1" else 303)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    """Serve a site."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_every_page_is_measured(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With status and size, so that an error page is no good time."""
    main([url, "right", "--rounds", "2"])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [[path, "200"] for path in PAGES]


def test_a_wrong_token_is_told(url: str) -> None:
    """Else the sign-in page would be measured."""
    with pytest.raises(SystemExit, match="403"):
        main([url, "wrong"])


def test_a_line_has_median_and_worst() -> None:
    """In milliseconds."""
    assert Measured("/", 200, 9, (1.0, 2.0, 30.0)).line().split() == [
        *("/", "200", "9", "B", "2.0", "30.0")
    ]
