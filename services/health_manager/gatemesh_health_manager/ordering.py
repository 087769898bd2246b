"""The command of each action: what it carries, and how long its report may take (pure)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from gatemesh_common.messages import (
    Action,
    AnyCommand,
    DrainInstance,
    EjectInstance,
    ReadmitInstance,
    RepairInstance,
    ReplaceInstance,
    RestartInstance,
    RollBackInstance,
    derived_id,
)
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.record import CommandOrder, Condition, InstanceRecord

NO_LIFE = "none"
"""Names no life: a restart about it is done as soon as any life runs."""
ENDS_OR_CHANGES_A_LIFE = frozenset(
    {Action.DRAIN, Action.RESTART, Action.REPAIR, Action.REPLACE, Action.ROLL_BACK}
)
"""Actions that a pool is spared while it is paused, or the fleet brake is on."""


KINDS: Mapping[Action, type[AnyCommand]] = {
    Action.DRAIN: DrainInstance,
    Action.EJECT: EjectInstance,
    Action.RESTART: RestartInstance,
    Action.READMIT: ReadmitInstance,
    Action.REPAIR: RepairInstance,
    Action.REPLACE: ReplaceInstance,
    Action.ROLL_BACK: RollBackInstance,
}


def time_for(action: Action, policy: PoolPolicy) -> float:
    """Return the longest wait for the report of a command, in seconds."""
    drain, restart = policy.drain, policy.restart
    start_s = restart.grace_s + restart.start_timeout_s + restart.margin_s
    return {
        Action.DRAIN: drain.grace_s + drain.margin_s,
        Action.RESTART: start_s,
        Action.REPAIR: policy.repair.timeout_s,
        Action.REPLACE: start_s + policy.replace.pull_timeout_s,
        Action.ROLL_BACK: start_s + policy.roll_back.timeout_s,
    }.get(action, policy.limits.command_timeout_s)


def command_for(
    action: Action, policy: PoolPolicy, routing_version: int, common: dict[str, Any]
) -> AnyCommand:
    """Return the command; `common` holds the fields that all commands have."""
    restart = policy.restart
    start = {"grace_s": restart.grace_s, "start_timeout_s": restart.start_timeout_s}
    own: dict[Action, dict[str, Any]] = {
        Action.DRAIN: {"grace_s": policy.drain.grace_s, "routing_version": routing_version},
        Action.EJECT: {"grace_s": 0, "routing_version": routing_version},
        Action.RESTART: start,
        Action.REPAIR: {"grace_s": 0},
        Action.REPLACE: {**start, "pull_timeout_s": policy.replace.pull_timeout_s},
        Action.ROLL_BACK: {**start, "roll_back_timeout_s": policy.roll_back.timeout_s},
        Action.READMIT: {},
    }
    return KINDS[action](**common, **own[action])


def order_for(
    action: Action,
    record: InstanceRecord,
    policy: PoolPolicy,
    routing_version: int,
    now: datetime,
    *,
    traceparent: str | None = None,
) -> CommandOrder:
    """Return the order of an action about an instance, by its present fence."""
    dump_s = dump_time(action, record, policy)
    due_at = now + timedelta(seconds=time_for(action, policy) + dump_s)
    common: dict[str, Any] = {
        "message_id": command_id(action, record),
        "timestamp": now,
        "traceparent": traceparent,
        "instance_id": record.instance_id,
        "pool": record.pool,
        "incarnation": record.incarnation,
        "life_id": record.target_life or record.life_id or NO_LIFE,
        "fence": record.fence,
        "incident_id": record.incident.incident_id if record.incident else None,
        "expires_at": due_at,
    }
    command = command_for(action, policy, routing_version, common)
    if dump_s and isinstance(command, RestartInstance):
        command = command.model_copy(update={"dump_timeout_s": dump_s})
    return CommandOrder(command, due_at)


def command_id(action: Action, record: InstanceRecord) -> str:
    """Return the id of the command of an action, by the present fence."""
    incident_id = record.incident.incident_id if record.incident else ""
    return derived_id("command", record.instance_id, incident_id, str(record.fence), action)


def dump_time(action: Action, record: InstanceRecord, policy: PoolPolicy) -> float:
    """Return how long a core dump may take before a restart; 0 where there was no proof."""
    incident = record.incident
    proven = incident is not None and incident.condition is Condition.B
    wanted = proven and record.running and action is Action.RESTART
    return policy.condition_b.dump_timeout_s if wanted else 0.0
