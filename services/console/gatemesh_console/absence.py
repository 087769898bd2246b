"""A database that is away, remembered for a moment: whoever asks is told at once, one tries."""

import time
from collections.abc import Callable

from gatemesh_common.errors import DatabaseUnavailableError

AGAIN_S = 1.0
"""So long after a failed try the next one is made."""


class Absence:
    """Lets everybody through while the database answers, and one at a time while it does not."""

    def __init__(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._why = ""
        self._again_at_s = 0.0

    def check(self) -> None:
        """Let somebody ask the database.

        Raises:
            DatabaseUnavailableError: it was away just now, or another one is trying.
        """
        if not self._why:
            return
        now_s = self._clock()
        if now_s < self._again_at_s:
            raise DatabaseUnavailableError(self._why)
        self._again_at_s = now_s + self._patience_s

    def begin(self, error: DatabaseUnavailableError) -> None:
        """Note that it did not answer."""
        self._why = str(error)
        self._again_at_s = self._clock() + AGAIN_S

    def end(self) -> None:
        """Note that it answered."""
        self._why = ""
