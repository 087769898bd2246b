"""Which life a command is about."""

from datetime import timedelta

import pytest

from gatemesh_common.messages import RestartInstance
from gatemesh_executor.backends.base import Observation, Phase
from gatemesh_executor.jobs import is_other_life

from .conftest import START, World


@pytest.mark.parametrize(
    ("named", "running", "other"),
    [
        pytest.param("a", "a", False, id="the-named-one"),
        pytest.param("a", "b", True, id="another-one"),
        pytest.param("a", None, False, id="none-runs"),
        pytest.param(None, None, False, id="none-named-none-runs"),
    ],
)
def test_a_named_life(world: World, named: str | None, running: str | None, other: bool) -> None:  # noqa: FBT001
    """A redelivered restart finds the life that it started."""
    command = world.command(RestartInstance, life_id=named)
    assert is_other_life(command, Observation(Phase.RUNNING, running, START)) is other


@pytest.mark.parametrize(
    ("began_s", "other"), [(-1.0, False), (-0.5, True), (0.0, True), (5.0, True)]
)
def test_without_a_name_the_time_decides(world: World, began_s: float, other: bool) -> None:  # noqa: FBT001
    """A life that began with the command or after it is the command's own work."""
    world.time.elapsed_s = 0.5
    began = (START + timedelta(seconds=0.5 + began_s)).replace(microsecond=0)
    command = world.command(RestartInstance)
    assert is_other_life(command, Observation(Phase.RUNNING, "b", began)) is other
