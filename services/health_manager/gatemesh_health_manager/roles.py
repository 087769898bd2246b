"""Who may ask for what: roles, and the broker's users that have them."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gatemesh_common.messages import Identifier, RequestedAction
from gatemesh_health_manager.asked import Asked

EVERY = "*"
NOT_PROVEN = (
    "not authorised: the message carries no user_id, so that the broker has not proven who sent "
    "it; set that property to the user of the connection (gatemesh-ctl does)"
)

Place = tuple[str, ...]
"""Where something stands in the policy file, table by table."""


class Role(BaseModel):
    """Some actions on some pools."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    actions: frozenset[Literal[RequestedAction, "*"]] = Field(min_length=1)
    """What may be asked for; "*" is everything."""
    pools: frozenset[Identifier] = Field(default=frozenset({EVERY}), min_length=1)
    """Pools on which; "*" is every one."""

    def allows(self, action: RequestedAction, pool: str) -> bool:
        """True where the role is enough for an action on a pool."""
        return not self.actions.isdisjoint({action, EVERY}) and not self.pools.isdisjoint(
            {pool, EVERY}
        )


Roles = Mapping[str, Role]
Operators = Mapping[str, frozenset[str]]
"""Names of roles by user."""


def why_not_allowed(
    roles: Roles, operators: Operators | None, request: Asked, pool: str
) -> str | None:
    """Return why a request about something in a pool must be refused; None when it may be followed.

    Where no operators are named, whoever may publish may ask.
    """
    if operators is None:
        return None
    user = request.proven_user
    if user is None:
        return NOT_PROVEN
    if user not in operators:
        return f"not authorised: {user!r} is not among the operators"
    names = sorted(operators[user])
    if any(name in roles and roles[name].allows(request.action, pool) for name in names):
        return None
    held = f"has the roles {', '.join(names)}" if names else "has no role"
    return f"not authorised: {user!r} {held}, none for {request.action} in pool {pool!r}"


def role_faults(roles: Roles, operators: Operators | None) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong between roles and operators: where, and what it must be."""
    if operators is None:
        for name in roles:
            yield ("roles", name), "nobody has a role: name users in [operators]"
        return
    for user, names in operators.items():
        for name in sorted(names - roles.keys()):
            known = ", ".join(sorted(roles)) or "none"
            yield ("operators", user), f"there is no role {name!r}; known roles: {known}"
