"""Which commands are refused."""

from datetime import timedelta
from typing import Any

import pytest

from gatemesh_common.messages import Action, DrainInstance
from gatemesh_executor.refuse import NOTHING_OBEYED, Obeyed, Refusal, refusal

from .conftest import INSTANCES, START, World


@pytest.mark.parametrize(
    ("fields", "highest", "late_s", "expected"),
    [
        pytest.param({}, 0, 0, None, id="good"),
        pytest.param({"fence": 5}, 5, 0, None, id="the-same-fence-again"),
        pytest.param({"fence": 4}, 5, 0, Refusal.STALE_FENCE, id="one-below"),
        pytest.param({}, 0, 59.9, None, id="just-in-time"),
        pytest.param({}, 0, 60, Refusal.EXPIRED, id="expired"),
        pytest.param({"instance_id": "other"}, 0, 0, Refusal.UNKNOWN_INSTANCE, id="unknown"),
        pytest.param({"pool": "other"}, 0, 0, Refusal.WRONG_POOL, id="pool"),
    ],
)
def test_refusals(
    world: World, fields: dict[str, Any], highest: int, late_s: float, expected: Refusal | None
) -> None:
    """At the limit and one past it."""
    command = world.command(DrainInstance, **fields)
    now = START + timedelta(seconds=late_s)
    assert refusal(command, INSTANCES, set(Action), Obeyed(highest), now) is expected


def test_an_action_without_a_playbook_is_refused(world: World) -> None:
    """A newer manager may know more than this executor."""
    command = world.command(DrainInstance)
    found = refusal(command, INSTANCES, {Action.EJECT}, NOTHING_OBEYED, START)
    assert found is Refusal.WRONG_ACTION


@pytest.mark.parametrize("late_s", [0, 60], ids=["in-time", "expired-meanwhile"])
def test_a_command_that_has_ended_is_a_duplicate(world: World, late_s: float) -> None:
    """Also past its time: by "expired" it would end a second time."""
    command = world.command(DrainInstance, fence=5)
    obeyed = Obeyed(5, command.message_id)
    now = START + timedelta(seconds=late_s)
    assert refusal(command, INSTANCES, set(Action), obeyed, now) is Refusal.DUPLICATE


def test_another_command_of_the_same_fence_is_no_duplicate(world: World) -> None:
    """A restored database gives numbers out again; ids never."""
    obeyed = Obeyed(5, "another")
    command = world.command(DrainInstance, fence=5)
    assert refusal(command, INSTANCES, set(Action), obeyed, START) is None
