"""A balancer in memory that keeps the protocol's promises, for tests."""

from gatemesh_executor.instances import Instance


class FakeBalancer:
    """Remembers what is out; confirms whatever version it was told is applied."""

    def __init__(self, applied_version: int = 0) -> None:
        self.applied_version = applied_version
        self.out: set[str] = set()

    async def take_out(self, instance: Instance) -> None:
        """Record the instance as out."""
        self.out.add(instance.instance_id)

    async def put_back(self, instance: Instance) -> None:
        """Record the instance as in."""
        self.out.discard(instance.instance_id)

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Answer at once."""
        return instance.instance_id in self.out and self.applied_version >= routing_version
