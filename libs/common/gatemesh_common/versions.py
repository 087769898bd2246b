"""Which of two numbered tellings counts, of what the manager repeats (pure)."""

from datetime import datetime, timedelta
from typing import Protocol

RESET_SLACK = timedelta(seconds=10)
"""A lower version that is so much younger comes from a manager whose database began anew."""


class Versioned(Protocol):
    """What the manager repeats under a rising number."""

    @property
    def version(self) -> int:
        """The number."""

    @property
    def timestamp(self) -> datetime:
        """When it was told."""


def supersedes(new: Versioned, old: Versioned) -> bool:
    """Return True when what was received replaces what is known.

    The manager repeats the present version with a new timestamp, so a lower version that is that
    much younger comes from a database that began anew, or puts an absurd one right.
    """
    if new.version > old.version:
        return True
    return new.version < old.version and new.timestamp - old.timestamp > RESET_SLACK
