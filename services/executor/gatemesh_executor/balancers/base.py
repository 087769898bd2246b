"""What the executor asks of whatever routes requests to the engines."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gatemesh_common.errors import GatemeshError
from gatemesh_executor.instances import Instance


class BalancerUnavailableError(GatemeshError):
    """The balancer did not do as it was told; what it did before, it goes on doing."""

    retryable = True


class BalancerRefusedError(GatemeshError):
    """The balancer does not know the server, or may not be told; names the way out."""


class StillOutError(GatemeshError):
    """The routing table does not have the instance in rotation; nothing was put back."""

    retryable = True


@dataclass(frozen=True, order=True)
class Server:
    """An instance as a balancer knows it."""

    backend: str
    """Name of the group that it is listed in; empty where there is only one."""
    name: str

    def __str__(self) -> str:
        """Return both names as one word."""
        return f"{self.backend}/{self.name}" if self.backend else self.name


@dataclass(frozen=True)
class Standing:
    """How a balancer treats a server, as read back from it."""

    out: bool
    """No new request goes there."""
    weight: int
    """In the balancer's own unit."""
    full_weight: int
    """The weight of an equal part of the traffic, in the same unit."""
    sessions: int | None = None
    """Requests under way and queued there; None where the balancer cannot say."""
    by_hand: bool = False
    """Out by a person's maintenance, which is left alone."""


class Change(StrEnum):
    """What makes a server's standing what it should be."""

    TAKE_OUT = "take_out"
    PUT_BACK = "put_back"
    SET_WEIGHT = "set_weight"


def weight_of(share: float, full_weight: int) -> int:
    """Return a share of an equal part of the traffic in a balancer's unit; at least 1."""
    return max(1, round(share * full_weight))


def change_for(found: Standing, share: float) -> Change | None:
    """Return what a server lacks to have this share, 0 meaning out; None when it lacks nothing."""
    if share == 0:
        return None if found.out else Change.TAKE_OUT
    if found.by_hand:
        return None
    if found.out:
        return Change.PUT_BACK
    fits = found.weight == weight_of(share, found.full_weight)
    return None if fits else Change.SET_WEIGHT


class Balancer(Protocol):
    """One load balancer. Every method is idempotent and returns when it is read back as done.

    Raises:
        BalancerUnavailableError: it did not do so; another try may help.
        BalancerRefusedError: it never will.
    """

    async def take_out(self, server: Server) -> None:
        """Stop new requests from reaching the server; running ones go on."""

    async def put_back(self, server: Server, share: float) -> None:
        """Let new requests reach the server, a share of an equal part (0 to 1) from the first."""

    async def set_weight(self, server: Server, share: float) -> None:
        """Give the server another share; one that is out stays out."""

    async def look(self, server: Server) -> Standing:
        """Read back how the server is treated."""

    async def assert_again(self, shares: Mapping[Server, float]) -> tuple[Server, ...]:
        """Have these shares hold, 0 meaning out; return what had come to differ.

        A balancer that was started anew has forgotten what it was told.
        """


async def assert_each(balancer: Balancer, shares: Mapping[Server, float]) -> tuple[Server, ...]:
    """Have these shares hold, one server after the other; return what had come to differ.

    Raises what a balancer raises; a refusal about one server keeps none of the others waiting.
    """
    changed, refused = [], None
    for server, share in shares.items():
        try:
            change = change_for(await balancer.look(server), share)
            await make(balancer, change, server, share)
        except BalancerRefusedError as error:
            refused = refused or error
        else:
            changed += [server] if change else []
    if refused is not None:
        raise refused
    return tuple(changed)


async def make(balancer: Balancer, change: Change | None, server: Server, share: float) -> None:
    """Make one change, or none."""
    match change:
        case Change.TAKE_OUT:
            await balancer.take_out(server)
        case Change.PUT_BACK:
            await balancer.put_back(server, share)
        case Change.SET_WEIGHT:
            await balancer.set_weight(server, share)


class Rotation(Protocol):
    """Everything that routes to the instances. Every method is idempotent.

    Raises what `Balancer` raises.
    """

    async def take_out(self, instance: Instance, routing_version: int) -> None:
        """Stop new requests from reaching it; the table of that version is the first without it."""

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Wait until nobody routes there; False when agents have not said so by the deadline."""

    async def sessions(self, instance: Instance) -> int | None:
        """Return how many requests are under way there; None where nobody counts them."""

    async def put_back(self, instance: Instance) -> tuple[str, ...]:
        """Let new requests reach the instance; returns what the report should say.

        Raises:
            StillOutError: the routing table says otherwise.
        """
