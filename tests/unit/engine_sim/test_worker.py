"""The second process."""

import os
import signal

from gatemesh_engine_sim.worker import start_worker


def test_worker_shares_the_group_and_ends_by_sigterm() -> None:
    """So that whoever ends the group ends it too."""
    worker = start_worker()
    try:
        assert os.getpgid(worker.pid) == os.getpgrp()
        assert worker.poll() is None
    finally:
        worker.terminate()
        # Before its handler stands, the signal ends it the hard way.
        assert worker.wait(10) in {0, -signal.SIGTERM}
