"""One stack for these tests: real broker, database, supervisord; simulated engines."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.acceptance.fleet import Fleet, quick_engines
from tests.history import assert_replay_agrees

from gatemesh_mesh.foreground import running_stack
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder

POLICY = """
# Many drills in one stack: the restart budget, its back-off and flap damping have tests of their
# own. The fleet brake is on: one instance after the other is spoiled, and that must not trip it.
[defaults.flap]
enabled = false
[defaults.restart]
restarts = 1000
back_off_s = [0]
[defaults.condition_b]
reconfirm_window_s = 0.001
"""


@pytest.fixture(scope="package")
def running_fleet() -> Iterator[Fleet]:
    """Start the stack once; it is ended whatever happens, and its history must replay."""
    folder = StateFolder(Path(tempfile.mkdtemp(prefix="gatemesh-accept-")))
    policy = folder.root / "policy.toml"
    policy.write_text(POLICY)
    options = StackOptions(engine_count=3, policy_file=policy)
    try:
        with running_stack(folder, options, SilentProgress(), quick_engines) as (stack, plan):
            with closing(Fleet(stack, plan)) as fleet:
                yield fleet
            assert_replay_agrees(plan.addresses.database_url)
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)


@pytest.fixture
async def fleet(running_fleet: Fleet) -> AsyncIterator[Fleet]:
    """Hand over a stack at rest, and leave it at rest for the next test."""
    await running_fleet.settled()
    yield running_fleet
    await running_fleet.settled()
