"""A stand-in engine for stop and start tests: answers `/health`, and has habits by argument."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Health(BaseHTTPRequestHandler):
    """Answers every GET with 200."""

    def do_GET(self) -> None:
        """Say that all is well."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


def main() -> None:
    """Serve until told to leave, or leave at once, as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--drain-s", type=float, default=0.0)
    parser.add_argument("--ignore-sigterm", action="store_true")
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--exit-code", type=int)
    parser.add_argument("--leave-on", type=Path, help="exit with code 0 once this file exists")
    options = parser.parse_args()
    if options.exit_code is not None:
        sys.exit(options.exit_code)
    if options.worker:
        # Like an engine's worker: same process group, does not notice its parent's death.
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    def leave(*_: object) -> None:
        time.sleep(options.drain_s)
        os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if options.ignore_sigterm else leave)
    server = HTTPServer(("127.0.0.1", options.port), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # From here on its habits hold; before, a signal would simply end it.
    Path(f"ready-{os.getpid()}").touch()
    while options.leave_on is None or not options.leave_on.exists():
        time.sleep(0.02)
    os._exit(0)


if __name__ == "__main__":
    main()
