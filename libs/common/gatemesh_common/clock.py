"""Time as an argument: whoever needs it is handed a clock."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the present moment, aware and in UTC."""


def utc_now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)
