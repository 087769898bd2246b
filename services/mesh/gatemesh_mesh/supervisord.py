"""supervisord as a program that ends, with all it runs, when its starter has died."""

import ctypes
import os
import signal
import sys

from supervisor import supervisord

PR_SET_PDEATHSIG = 1


def main(starter_pid: int, arguments: list[str]) -> None:
    """Tie this process to its starter, then be supervisord."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != starter_pid:
        # It died before the tie was made.
        sys.exit(1)
    supervisord.main(arguments)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
