"""How long the pages of a running console take, as one browser sees them.

    python -m benchmarks.console_pages http://127.0.0.1:8090 TOKEN [--rounds 20]

The tests in tests/integration/console fill a database with 500 instances and 10,000 verdicts.
"""

import argparse
import http.client
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

PAGES = ("/", "/gates.json", "/incidents", "/timeline", "/requests", "/policy")


@dataclass(frozen=True)
class Measured:
    """Times of one page."""

    path: str
    status: int
    size_bytes: int
    times_ms: tuple[float, ...]

    def line(self) -> str:
        """Return what is printed."""
        median, worst = statistics.median(self.times_ms), max(self.times_ms)
        return f"{self.path:<14}{self.status:>4}{self.size_bytes:>9} B{median:>9.1f}{worst:>9.1f}"


def sign_in(host: str, token: str) -> str:
    """Return the cookie of a new session."""
    kind = {"content-type": "application/x-www-form-urlencoded"}
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        connection.request("POST", "/sign-in", urlencode({"token": token}), kind)
        answer = connection.getresponse()
        answer.read()
    cookie = answer.headers.get("set-cookie", "").partition(";")[0]
    if not cookie:
        raise SystemExit(f"the console answers {answer.status}: is the token right?")
    return cookie


def measure(host: str, cookie: str, path: str, rounds: int) -> Measured:
    """Ask for one page again and again."""
    times_ms: list[float] = []
    body, status = b"", 0
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        for _ in range(rounds):
            began_s = time.perf_counter()
            connection.request("GET", path, headers={"cookie": cookie})
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
            times_ms.append((time.perf_counter() - began_s) * 1000)
    return Measured(path, status, len(body), tuple(times_ms))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args(arguments)
    host = urlsplit(given.url).netloc
    cookie = sign_in(host, given.token)
    print("page          code      size   median     worst (ms)")
    for path in PAGES:
        print(measure(host, cookie, path, given.rounds).line())


if __name__ == "__main__":
    main()
