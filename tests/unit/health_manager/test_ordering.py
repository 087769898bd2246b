"""The command of each action."""

from typing import Any

import pytest

from gatemesh_common.messages import Action, RepairInstance, ReplaceInstance, RestartInstance
from gatemesh_health_manager.ordering import (
    ENDS_OR_CHANGES_A_LIFE,
    NO_LIFE,
    command_for,
    common_fields,
    dump_time_for,
    time_for,
)
from gatemesh_health_manager.record import Condition

from .samples import NOW, POLICY, at, in_pool, incident, record

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


def test_commands_name_life_incident_and_fence() -> None:
    """One about no life is done as soon as any runs."""
    about = record(fence=4, incident=incident())
    fields = common_fields(about, Action.DRAIN, NOW, at(30))
    assert (fields["life_id"], fields["incident_id"], fields["fence"]) == (
        "life-1",
        "incident-1",
        4,
    )
    assert common_fields(record(life_id=None), Action.DRAIN, NOW, at(30))["life_id"] == NO_LIFE
    assert fields["message_id"] != common_fields(about, Action.EJECT, NOW, at(30))["message_id"]


def test_only_a_proof_is_dumped() -> None:
    """And only before the restart of a process that runs."""
    policy = in_pool(condition_b={"dump_timeout_s": 9.0})
    proven = record(incident=incident(condition=Condition.B))
    assert dump_time_for(Action.RESTART, proven, policy) == 9
    assert dump_time_for(Action.DRAIN, proven, policy) == 0
    assert dump_time_for(Action.RESTART, record(incident=incident()), policy) == 0
    gone = record(incident=incident(condition=Condition.B), running=False)
    assert dump_time_for(Action.RESTART, gone, policy) == 0


def test_a_paused_pool_is_spared_what_touches_a_process() -> None:
    """Taking out of rotation and putting back are no such thing."""
    assert set(Action) - ENDS_OR_CHANGES_A_LIFE == {Action.EJECT, Action.READMIT}
