"""The command of each action."""

from typing import Any

import pytest

from gatemesh_common.messages import Action, RepairInstance, ReplaceInstance, RestartInstance
from gatemesh_health_manager.ordering import (
    ENDS_OR_CHANGES_A_LIFE,
    command_for,
    command_id,
    order_for,
    time_for,
)

from .samples import NOW, POLICY, at, record

COMMON: dict[str, Any] = {
    "message_id": "command-1",
    "timestamp": NOW,
    "instance_id": "engine-0",
    "pool": "default",
    "incarnation": 1,
    "life_id": "life-1",
    "fence": 7,
    "expires_at": at(30),
}


@pytest.mark.parametrize("action", Action)
def test_every_action_has_a_command(action: Action) -> None:
    """With the fields that all of them share."""
    command = command_for(action, POLICY, 8, COMMON)
    assert (command.action, command.fence, command.life_id) == (action, 7, "life-1")


def test_commands_carry_their_times() -> None:
    """The executor gives up no later than the manager does."""
    replace = command_for(Action.REPLACE, POLICY, 8, COMMON)
    assert isinstance(replace, ReplaceInstance)
    assert (replace.pull_timeout_s, replace.start_timeout_s) == (1800, 300)
    restart = command_for(Action.RESTART, POLICY, 8, COMMON)
    assert isinstance(restart, RestartInstance)
    assert isinstance(command_for(Action.REPAIR, POLICY, 8, COMMON), RepairInstance)
    assert time_for(Action.REPLACE, POLICY) - time_for(Action.RESTART, POLICY) == 1800
    assert time_for(Action.RESTART, POLICY) > restart.start_timeout_s
    assert time_for(Action.REPAIR, POLICY) == POLICY.repair.timeout_s
    assert time_for(Action.EJECT, POLICY) == POLICY.limits.command_timeout_s


def test_a_paused_pool_is_spared_what_touches_a_process() -> None:
    """Taking out of rotation and putting back are no such thing."""
    assert set(Action) - ENDS_OR_CHANGES_A_LIFE == {Action.EJECT, Action.READMIT}


def test_an_order_has_its_time_from_its_issue() -> None:
    """However long it was wanted before."""
    about = record(wanted=Action.RESTART, wanted_from=at(-90), fence=3)
    order = order_for(Action.RESTART, about, POLICY, 7, NOW)
    assert order.command.expires_at == order.due_at == at(time_for(Action.RESTART, POLICY))
    assert order.command.message_id == command_id(Action.RESTART, about)
