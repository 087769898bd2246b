"""A stack that is being started is not taken for a broken one."""

import os
from pathlib import Path

import pytest

from gatemesh_ctl.addresses import Addresses
from gatemesh_ctl.starting import is_starting, start_of

OWN = Addresses("amqp://a/", "postgresql://d")
RUN = {
    "amqp_url": "amqp://a/",
    "database_url": "postgresql://d",
    "supervisord": [7, 100],
    "starting": True,
}


def living(pid: int) -> int | None:
    """Tell the start of the one process that there is."""
    return 100 if pid == 7 else None


def test_until_all_of_it_runs() -> None:
    """`./mesh up` says so in its file."""
    assert is_starting(RUN, OWN, living)
    assert not is_starting({**RUN, "starting": False}, OWN, living)


@pytest.mark.parametrize("recorded", [[8, 100], [7, 99], None])
def test_a_start_that_was_killed_is_over(recorded: list[int] | None) -> None:
    """Its number may be another process's by now."""
    assert not is_starting({**RUN, "supervisord": recorded}, OWN, living)


@pytest.mark.parametrize("other", [Addresses("amqp://b/", OWN.database_url), Addresses(None, None)])
def test_another_mesh_is_judged_by_itself(other: Addresses) -> None:
    """The folder's stack says nothing of a broker elsewhere."""
    assert not is_starting(RUN, other, living)
    assert not is_starting({}, other, living)


def test_a_process_is_known_by_its_start() -> None:
    """As the system tells it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert start_of(os.getpid()) == int(fields[19])
    assert start_of(2**22 + 1) is None
