"""Requests under way: counted where they are, so that the least loaded instance is known."""

from gatemesh_agent.metrics import IN_FLIGHT
from gatemesh_agent.routing import Router


class under_way:  # noqa: N801 (used as a block; a generator takes four times as long)
    """Counts a request at an instance for as long as the block runs."""

    __slots__ = ("_instance_id", "_router")

    def __init__(self, router: Router, instance_id: str) -> None:
        self._router = router
        self._instance_id = instance_id

    def __enter__(self) -> None:
        self._router.enter(self._instance_id)
        IN_FLIGHT.inc()

    def __exit__(self, *_error: object) -> None:
        self._router.leave(self._instance_id)
        IN_FLIGHT.dec()
