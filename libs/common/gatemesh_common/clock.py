"""Time as an argument: whoever needs it is handed a clock."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the present moment, aware and in UTC."""


def utc_now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


def as_utc(moment: datetime) -> datetime:
    """Read a moment without a zone as UTC, and turn any other zone into UTC.

    Raises:
        ValueError: it lies outside of the calendar there.
    """
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("outside of the calendar in UTC") from error
