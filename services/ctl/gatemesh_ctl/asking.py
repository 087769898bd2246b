"""What an operator asks of the manager, checked before it is sent."""

from collections.abc import Sequence
from datetime import datetime

from aiormq.exceptions import ChannelAccessRefused
from pydantic import ValidationError

from gatemesh_common.errors import BrokerRefusedError, BrokerUnavailableError, GatemeshError
from gatemesh_common.invalid import words_of
from gatemesh_common.messages import ActionRequest, TrialRequest
from gatemesh_common.publisher import Publisher
from gatemesh_ctl.actions import ACTIONS, BACKLOG_CHOICES, EITHER_ACTIONS, POOL_ACTIONS
from gatemesh_ctl.addresses import BROKER_VARIABLE, shown
from gatemesh_ctl.errors import CtlError, UnreachableError
from gatemesh_ctl.store import Row

APP_ID = "ctl"


def check_action(action: str, instance_id: str | None) -> None:
    """Raise CtlError when there is no such action, or it lacks its instance or has one too many."""
    if action not in ACTIONS:
        raise CtlError(f"there is no action {action!r}", f"actions: {', '.join(ACTIONS)}")
    if action in POOL_ACTIONS and instance_id is not None:
        raise CtlError(
            f"{action} is about a pool, not about instance {instance_id!r}", "give --pool instead"
        )
    if action not in (*POOL_ACTIONS, *EITHER_ACTIONS) and instance_id is None:
        raise CtlError(f"{action} needs an instance", f"gatemesh-ctl request {action} INSTANCE")


def check_backlog(action: str, backlog: str | None) -> None:
    """Raise CtlError when the choice for what the fleet brake has held is missing or misplaced."""
    if (action == "reset_brake") is (backlog is not None) and backlog in (None, *BACKLOG_CHOICES):
        return
    if action != "reset_brake":
        raise CtlError(f"{action} takes no --backlog", "leave it out")
    raise CtlError(
        "reset_brake needs a choice for the incidents that the brake has held",
        "give --backlog skip (they count for nothing) or --backlog replay (they are acted on)",
    )


def check_weight(action: str, weight: float | None) -> None:
    """Raise CtlError when a ceiling for the routing weight is missing or misplaced."""
    if (action == "set_weight") is (weight is not None):
        return
    if action != "set_weight":
        raise CtlError(f"{action} takes no --weight", "leave it out")
    raise CtlError(
        "set_weight needs the most weight that the instance gets",
        "give --weight 0 (no request goes there) to 1 (no ceiling)",
    )


def pool_of_instance(instance: Row, pool: str | None) -> str:
    """Return the instance's pool.

    Raises:
        CtlError: another one was given.
    """
    found = str(instance["pool"])
    if pool not in (None, found):
        raise CtlError(
            f"instance {instance['instance_id']!r} is in pool {found!r}, not in {pool!r}",
            "leave --pool out",
        )
    return found


def pool_to_hold(known: Sequence[str], pool: str | None) -> str:
    """Return the pool to pause or resume: the one given, or the only one there is.

    Raises:
        CtlError: it is unknown, or there are several and none was given.
    """
    if pool is None and len(set(known)) == 1:
        return known[0]
    if pool is not None and pool in known:
        return pool
    wrong = f"there is no pool {pool!r}" if pool else "which pool?"
    names = ", ".join(sorted(set(known))) or "none yet"
    raise CtlError(wrong, f"give --pool; known pools: {names}")


def build_request(
    action: str,
    pool: str,
    instance_id: str | None,
    now: datetime,
    *,
    by: str,
    reason: str,
    backlog: str | None = None,
    weight: float | None = None,
    model_version: str | None = None,
    dry_run: bool = False,
) -> ActionRequest:
    """Return the message; with `dry_run` one that asks only what would be done.

    Raises:
        CtlError: a field is out of bounds; names it.
    """
    try:
        return (TrialRequest if dry_run else ActionRequest).model_validate(
            {
                "action": action,
                "pool": pool,
                "instance_id": instance_id,
                "requested_by": by,
                "reason": reason,
                "backlog": backlog,
                "weight": weight,
                "model_version": model_version,
                "timestamp": now,
            }
        )
    except ValidationError as error:
        text = words_of(error)
        raise CtlError(f"the request is not valid: {text}", "correct the option it names") from None


async def send_request(amqp_url: str, request: ActionRequest) -> None:
    """Publish a request; returns once the broker has confirmed and routed it.

    Raises:
        UnreachableError: the broker did not confirm.
        CtlError: nobody would read it.
    """
    async with Publisher(amqp_url, APP_ID) as publisher:
        try:
            await publisher.publish(request)
        except BrokerUnavailableError as error:
            raise UnreachableError(
                f"the broker at {shown(amqp_url)} did not confirm: {error}",
                f"check that it runs and that {BROKER_VARIABLE} is right; asking twice is harmless",
            ) from None
        except BrokerRefusedError as error:
            if isinstance(error.__cause__, ChannelAccessRefused):
                raise CtlError(
                    "the broker does not let this user publish requests",
                    "have its administrator grant that: docs/authorisation.md",
                ) from None
            raise CtlError(
                str(error), f"the user in {BROKER_VARIABLE} must be that of the connection"
            ) from None
        except GatemeshError as error:
            raise CtlError(str(error), "start the health manager once") from None
