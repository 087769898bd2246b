"""Commands that must not be obeyed, and why (pure)."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from gatemesh_common.messages import Action, InstanceCommand
from gatemesh_executor.instances import Instances


class Refusal(StrEnum):
    """Why a command is refused; a closed list."""

    UNKNOWN_INSTANCE = "unknown_instance"
    WRONG_POOL = "wrong_pool"
    WRONG_ACTION = "wrong_action"
    EXPIRED = "expired"
    STALE_FENCE = "stale_fence"


def refusal(
    command: InstanceCommand,
    instances: Instances,
    actions: Collection[Action],
    highest_fence: int,
    now: datetime,
) -> Refusal | None:
    """Return why the command must not be obeyed; None when it must be.

    A fence equal to the highest one seen is the same command, delivered again.
    """
    instance = instances.get(command.instance_id)
    if instance is None:
        return Refusal.UNKNOWN_INSTANCE
    if instance.pool != command.pool:
        return Refusal.WRONG_POOL
    if command.action not in actions:
        return Refusal.WRONG_ACTION
    if now >= command.expires_at:
        return Refusal.EXPIRED
    return Refusal.STALE_FENCE if command.fence < highest_fence else None
