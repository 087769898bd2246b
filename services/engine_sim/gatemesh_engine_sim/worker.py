"""The engine's second process: same group, does nothing, outlives a SIGKILL of the first."""

import signal
import subprocess
import sys
from types import FrameType


def start_worker() -> subprocess.Popen[bytes]:
    """A worker in this process's group; it ends by SIGTERM, not with its parent."""
    return subprocess.Popen([sys.executable, "-m", "gatemesh_engine_sim.worker"])


def main() -> None:
    """Wait for SIGTERM."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, leave)
    # A terminal's interrupt reaches the whole group; the parent decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
