"""Commands that must not be obeyed, and why (pure)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gatemesh_common.messages import Action, InstanceCommand
from gatemesh_executor.instances import Instances


class Refusal(StrEnum):
    """Why a command is refused; a closed list."""

    UNKNOWN_INSTANCE = "unknown_instance"
    WRONG_POOL = "wrong_pool"
    WRONG_ACTION = "wrong_action"
    DUPLICATE = "duplicate"
    EXPIRED = "expired"
    STALE_FENCE = "stale_fence"


@dataclass(frozen=True)
class Obeyed:
    """What was obeyed for one instance so far."""

    fence: int = 0
    """The highest one."""
    ended_id: str | None = None
    """The command of that fence, once its report is published."""


NOTHING_OBEYED = Obeyed()


def refusal(
    command: InstanceCommand,
    instances: Instances,
    actions: Collection[Action],
    obeyed: Obeyed,
    now: datetime,
) -> Refusal | None:
    """Return why the command must not be obeyed; None when it must be.

    A fence equal to the highest one seen is the same command, delivered again: it is gone on with
    until it has ended. That it ended comes before that it expired meanwhile, since an expired
    command ends by its refusal, and one that was obeyed must not end twice.
    """
    instance = instances.get(command.instance_id)
    if instance is None:
        return Refusal.UNKNOWN_INSTANCE
    if instance.pool != command.pool:
        return Refusal.WRONG_POOL
    if command.action not in actions:
        return Refusal.WRONG_ACTION
    if command.message_id == obeyed.ended_id:
        return Refusal.DUPLICATE
    if now >= command.expires_at:
        return Refusal.EXPIRED
    return Refusal.STALE_FENCE if command.fence < obeyed.fence else None
