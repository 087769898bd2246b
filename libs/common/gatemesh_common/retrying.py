"""Trying again what fails for a passing reason."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gatemesh_common.errors import GatemeshError
from gatemesh_common.metrics import RETRIED
from gatemesh_common.publisher import is_told_to_end

log = logging.getLogger(__name__)

T = TypeVar("T")
LONGEST_RETRY_DELAY_S = 5.0


async def retry_passing_faults(
    operation: Callable[[], Awaitable[T]], *, first_delay_s: float = 0.05
) -> T:
    """Repeat an operation while it fails for a passing reason; the message stays unacknowledged."""
    delay_s = first_delay_s
    while True:
        try:
            return await operation()
        except GatemeshError as error:
            if is_told_to_end():
                # The client takes a cancellation while it connects for a fault of the broker.
                raise asyncio.CancelledError from error
            if not error.retryable:
                raise
            RETRIED.labels(error=type(error).__name__).inc()
            log.warning("retrying", extra={"error": str(error), "delay_s": delay_s})
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, LONGEST_RETRY_DELAY_S)
