"""What the executor asks of whatever routes requests to the engines."""

from typing import Protocol

from gatemesh_executor.instances import Instance


class Balancer(Protocol):
    """Takes instances out of rotation and puts them back. Every method is idempotent."""

    async def take_out(self, instance: Instance) -> None:
        """Stop new requests from reaching the instance; running ones go on."""

    async def put_back(self, instance: Instance) -> None:
        """Let new requests reach the instance."""

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Wait until nobody routes by an older table; False when the deadline passes first."""
