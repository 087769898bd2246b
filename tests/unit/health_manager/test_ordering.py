"""The command of each action."""

from dataclasses import replace
from typing import Any

import pytest

from gatemesh_common.messages import (
    Action,
    InstanceState,
    RepairInstance,
    ReplaceInstance,
    RestartInstance,
)
from gatemesh_health_manager.ordering import (
    ENDS_OR_CHANGES_A_LIFE,
    NO_LIFE,
    command_for,
    common_fields,
    dump_time,
    time_for,
)
from gatemesh_health_manager.policy import parse_policy
from gatemesh_health_manager.record import Condition

from .samples import NOW, POLICY, at, incident, record

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
    replacing = command_for(Action.REPLACE, POLICY, 8, COMMON)
    assert isinstance(replacing, ReplaceInstance)
    assert (replacing.pull_timeout_s, replacing.start_timeout_s) == (1800, 300)
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


def test_a_command_about_one_fence_has_one_id() -> None:
    """So that sending it again is no other command; the next fence is another one."""
    one = record(InstanceState.EJECTED, incident=incident(), fence=3)
    fields = common_fields(one, Action.RESTART, NOW, at(9))
    assert fields == common_fields(one, Action.RESTART, NOW, at(9))
    other = common_fields(replace(one, fence=4), Action.RESTART, NOW, at(9))
    assert other["message_id"] != fields["message_id"]
    assert (fields["expires_at"], fields["fence"]) == (at(9), 3)
    none = common_fields(record(InstanceState.STARTING, life_id=None), Action.RESTART, NOW, at(9))
    assert none["life_id"] == NO_LIFE


def test_only_a_proven_engine_is_dumped() -> None:
    """And only while it runs, before a restart."""
    policy = parse_policy("[defaults.condition_b]\ndump_timeout_s = 30").for_pool("default")
    proven = record(InstanceState.EJECTED, incident=incident(condition=Condition.B), running=True)
    assert dump_time(proven, Action.RESTART, policy) == 30
    assert dump_time(proven, Action.RESTART, POLICY) == 0
    assert dump_time(proven, Action.REPLACE, policy) == 0
    assert dump_time(replace(proven, running=False), Action.RESTART, policy) == 0
    soft = replace(proven, incident=incident(condition=Condition.A))
    assert dump_time(soft, Action.RESTART, policy) == 0
