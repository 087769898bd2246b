"""Answers of an engine are recorded in the format of the corpus."""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from benchmarks import clean_answers


class Engine(BaseHTTPRequestHandler):
    """Answers every request with its own prompt."""

    def do_GET(self) -> None:
        """Name the model."""
        self._send(200, {"data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        """Answer, or refuse what asks for volcanoes."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status = 400 if "volcanoes" in asked["messages"][0]["content"] else 200
        self._send(status, {"choices": [{"message": {"content": "ok"}}]})

    def _send(self, status: int, body: object) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Has room for all that ask at once; with the usual five the others are reset."""

    request_queue_size = 128


@pytest.fixture(name="engine")
def engine_fixture() -> Iterator[str]:
    """Return the address of a running stand-in."""
    server = Server(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_recording(engine: str, tmp_path: Path) -> None:
    """Every prompt has its line, in order, also where the engine refused."""
    out = tmp_path / "answers.jsonl.gz"
    assert clean_answers.record(engine, 70, out) == 70
    with gzip.open(out, "rt") as lines:
        found = [json.loads(line) for line in lines]
    assert len(found) == 70
    assert {line["request"]["model"] for line in found} == {"tiny"}
    assert {line["status"] for line in found} <= {200, 400}
    again = list(clean_answers.requests_of(70, model="tiny", seed=1))
    assert [line["request"] for line in found] == [line["request"] for line in again]


def test_prompts_differ() -> None:
    """There are enough prompts for a large recording, of many kinds and modes."""
    lines = list(clean_answers.requests_of(2_500, model="m", seed=1))
    assert len(lines) == 2_500
    assert (
        len({(line["request"]["messages"][0]["content"], line["mode"]) for line in lines}) == 2_500
    )
    assert {line["kind"] for line in lines} == set(clean_answers.TEMPLATES) | {"math"}
    assert len(set(clean_answers.prompts())) == len(clean_answers.prompts())
