"""Lines on their way out of the engine: made and written on a thread of their own."""

import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from gatemesh_vllm_plugin.settings import Target, TargetKind

log = logging.getLogger(__name__)

FLUSH_INTERVAL_S = 0.1
BUFFERED_JOBS = 5_000
DATAGRAM_BYTES = 32_000
Write = Callable[[Sequence[bytes]], None]
Job = Callable[[], list[bytes]]


class Sink:
    """Takes jobs at once; makes their lines and writes them from a thread of its own."""

    def __init__(self, write: Write, interval_s: float = FLUSH_INTERVAL_S) -> None:
        self._write = write
        self._interval_s = interval_s
        self._jobs: deque[Job] = deque(maxlen=BUFFERED_JOBS)
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: OSError | None = None
        """Why the target refused the latest lines; they are lost."""

    def put(self, job: Job) -> None:
        """Take one job; the oldest is dropped when nobody takes them away."""
        self._jobs.append(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._flush_forever, daemon=True)
            self._thread.start()
        self._wake.set()

    def flush(self) -> None:
        """Write what has gathered."""
        jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
        lines = [line for job in jobs for line in job()]
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
            try:
                self.flush()
            except Exception:
                # The top of this thread: what cannot be told is lost, the rest goes on.
                log.exception("figures_lost")


def writer_to(targets: Sequence[Target]) -> Write:
    """Return a writer to all of these targets; one that refuses does not keep from the others."""
    writes = [WRITERS[target.kind](target) for target in targets]

    def write(lines: Sequence[bytes]) -> None:
        failure: OSError | None = None
        for each in writes:
            try:
                each(lines)
            except OSError as error:
                failure = error
        if failure:
            raise failure

    return write


def append_to(target: Target) -> Write:
    """Return a writer that appends whole lines to a file, made readable for its owner only."""
    path = Path(target.address)

    def write(lines: Sequence[bytes]) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b"".join(lines))
        finally:
            os.close(descriptor)

    return write


def send_to(target: Target) -> Write:
    """Return a writer that sends whole lines as datagrams and never waits for a slow reader."""

    def write(lines: Sequence[bytes]) -> None:
        family = socket.AF_INET if target.kind is TargetKind.UDP else socket.AF_UNIX
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            for packet in packets(lines):
                sender.sendto(packet, target.socket_address)

    return write


WRITERS: dict[TargetKind, Callable[[Target], Write]] = {
    TargetKind.FILE: append_to,
    TargetKind.UNIX: send_to,
    TargetKind.UDP: send_to,
}


def packets(lines: Sequence[bytes], limit_bytes: int = DATAGRAM_BYTES) -> list[bytes]:
    """Return the lines joined into as few packets as fit; a line is never split."""
    joined: list[bytes] = []
    for line in lines:
        if joined and len(joined[-1]) + len(line) <= limit_bytes:
            joined[-1] += line
        else:
            joined.append(line)
    return joined
