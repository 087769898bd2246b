"""Requests under way: counted where they are, so that the least loaded instance is known."""

from collections.abc import Iterator
from contextlib import contextmanager

from gatemesh_agent.metrics import IN_FLIGHT
from gatemesh_agent.routing import Router


@contextmanager
def under_way(router: Router, instance_id: str) -> Iterator[None]:
    """Count a request at an instance for as long as the block runs."""
    router.enter(instance_id)
    IN_FLIGHT.inc()
    try:
        yield
    finally:
        router.leave(instance_id)
        IN_FLIGHT.dec()
