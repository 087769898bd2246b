"""What a person asks of the manager, made of a form and checked before it is sent."""

from collections.abc import Mapping
from datetime import datetime
from typing import get_args
from uuid import UUID, uuid4

from pydantic import ValidationError

from gatemesh_common.invalid import misfits_of
from gatemesh_common.messages import POOL_REQUESTS, ActionRequest, TrialRequest
from gatemesh_common.words import RequestedAction
from gatemesh_console.errors import BadInputError

ACTIONS: tuple[str, ...] = get_args(RequestedAction)
WHOLE_POOL = ("pause", "resume", "reset_brake")
"""About a pool, never about one instance."""
FIELDS = {"reset_brake": ("backlog",), "set_weight": ("weight",), "roll_back": ("model_version",)}
"""What some actions take beside instance, pool and reason."""
GRAVE = frozenset({"eject", "replace", "roll_back", "quarantine", "reset_brake", "drain"})
"""What takes capacity away, or a brake."""


def check_action(action: str) -> str:
    """Return the action.

    Raises:
        BadInputError: there is none of that name.
    """
    if action not in ACTIONS:
        raise BadInputError("action", f"must be one of {', '.join(ACTIONS)}")
    return action


def check_id(text: str) -> str:
    """Return the id that a page made for its request, or a new one: sent twice, it counts once.

    Raises:
        BadInputError: it is none of ours.
    """
    if not text:
        return str(uuid4())
    try:
        return str(UUID(text))
    except ValueError:
        raise BadInputError("message_id", "is none of this page; reload it") from None


def build_request(
    form: Mapping[str, str], by: str, now: datetime, *, dry_run: bool
) -> ActionRequest:
    """Return the message that a form asks for.

    Raises:
        BadInputError: a field is missing or out of bounds; names it.
    """
    action = check_action(form.get("action", ""))
    instance_id = None if action in WHOLE_POOL else form.get("instance_id") or None
    if instance_id is None and action not in POOL_REQUESTS:
        raise BadInputError("instance_id", f"{action} needs an instance; choose one")
    extra = {name: form.get(name) or None for name in FIELDS.get(action, ())}
    if instance_id is not None:
        extra.pop("model_version", None)
    fields = {
        "action": action,
        "pool": form.get("pool", ""),
        "instance_id": instance_id,
        "requested_by": by,
        "reason": form.get("reason", ""),
        "timestamp": now,
        "message_id": str(uuid4()) if dry_run else check_id(form.get("message_id", "")),
        **extra,
    }
    try:
        return (TrialRequest if dry_run else ActionRequest).model_validate(fields)
    except ValidationError as error:
        raise _first_fault(error) from None


def _first_fault(error: ValidationError) -> BadInputError:
    place, message = misfits_of(error)[0]
    if place:
        return BadInputError(str(place[0]), message)
    field, _, told = message.partition(": ")
    return BadInputError(field, told or "is not valid")
