"""Lines on their way out of the engine: buffered, flushed on a timer, dropped in a jam."""

import json
import logging
import math
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from gatemesh_vllm_plugin.figures import Figures
from gatemesh_vllm_plugin.watched import DueRow

log = logging.getLogger(__name__)

FLUSH_INTERVAL_S = 0.2
BUFFERED_LINES = 20_000
DATAGRAM_BYTES = 32_000
Write = Callable[[Sequence[bytes]], None]


def line_of(due: DueRow, figures: Figures, at: float) -> bytes:
    """Return one JSON line: figures of one step of one answer; null where a figure is NaN."""
    body = {
        "probe_id": due.probe_id,
        "step": due.step,
        "entropy_nats": _number(figures.entropy_nats),
        "top1_p": _number(figures.top1_p),
        "nan": figures.nan_count,
        "pos_inf": figures.pos_inf_count,
        "neg_inf": figures.neg_inf_count,
        "at": at,
    }
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


class Sink:
    """Takes lines at once and writes them from a thread of its own."""

    def __init__(self, write: Write, interval_s: float = FLUSH_INTERVAL_S) -> None:
        self._write = write
        self._interval_s = interval_s
        self._lines: deque[bytes] = deque(maxlen=BUFFERED_LINES)
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: OSError | None = None
        """Why the target refused the latest lines; they are lost."""

    def put(self, line: bytes) -> None:
        """Take one line; the oldest is dropped when nobody takes them away."""
        self._lines.append(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._flush_forever, daemon=True)
            self._thread.start()
        self._wake.set()

    def flush(self) -> None:
        """Write what has gathered."""
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        try:
            self._write(lines)
        except OSError as error:
            self._note_failure(error)
        else:
            self.failure = None

    def _note_failure(self, error: OSError) -> None:
        if self.failure is None:
            log.warning("figures_not_written", extra={"error": str(error)})
        self.failure = error

    def _flush_forever(self) -> None:
        pause = threading.Event()
        while self._wake.wait():
            self._wake.clear()
            pause.wait(self._interval_s)
            self.flush()


def append_to(path: Path) -> Write:
    """Return a writer that appends whole lines to a file, made readable for its owner only."""

    def write(lines: Sequence[bytes]) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b"".join(lines))
        finally:
            os.close(descriptor)

    return write


def send_to(path: Path) -> Write:
    """Return a writer that sends whole lines as datagrams and never waits for a slow reader."""

    def write(lines: Sequence[bytes]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            for packet in packets(lines):
                sender.sendto(packet, str(path))

    return write


def packets(lines: Sequence[bytes], limit_bytes: int = DATAGRAM_BYTES) -> list[bytes]:
    """Return the lines joined into as few packets as fit; a line is never split."""
    joined: list[bytes] = []
    for line in lines:
        if joined and len(joined[-1]) + len(line) <= limit_bytes:
            joined[-1] += line
        else:
            joined.append(line)
    return joined
