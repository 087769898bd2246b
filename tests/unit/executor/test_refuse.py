"""Which commands are refused."""

from datetime import timedelta
from typing import Any

import pytest

from gatemesh_common.messages import Action, DrainInstance
from gatemesh_executor.refuse import Refusal, refusal

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
    assert refusal(command, INSTANCES, set(Action), highest, now) is expected


def test_an_action_without_a_playbook_is_refused(world: World) -> None:
    """A newer manager may know more than this executor."""
    command = world.command(DrainInstance)
    found = refusal(command, INSTANCES, {Action.EJECT}, 0, START)
    assert found is Refusal.WRONG_ACTION
