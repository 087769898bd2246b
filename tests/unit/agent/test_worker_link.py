"""What a worker is told by its command line."""

import pytest

from gatemesh_agent.worker_link import worker_in
from gatemesh_agent.worker_share import Worker


def test_without_a_supervisor_nobody_is_a_worker() -> None:
    """The usual start."""
    assert worker_in([]) is None


def test_a_supervisor_hands_over_place_and_sockets() -> None:
    """By number: the descriptors are inherited."""
    assert worker_in(["--worker", "1", "--listen-fd", "5", "--link-fd", "6"]) == Worker(1, 5, 6)


def test_an_unknown_argument_ends_the_program() -> None:
    """Settings are environment variables."""
    with pytest.raises(SystemExit):
        worker_in(["--port", "80"])
