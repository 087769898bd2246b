"""A token bucket: so many at once, then so many in a time. Pure: any clock that goes forward."""

import math

MINUTE_S = 60.0


class Bucket:
    """Is full at first and refilled evenly; what was used more than it held is a debt."""

    __slots__ = ("_at_s", "_left", "_most", "_per_s")

    def __init__(self, per_s: float, most: float) -> None:
        self._per_s = per_s
        self._most = float(most)
        self._left = self._most
        self._at_s: float | None = None

    @classmethod
    def per_min(cls, amount: float, burst: float | None = None) -> "Bucket":
        """Return one that lets so much through in a minute, and as much or `burst` at once.

        Less than one can never be used at once: then one is held. Nothing passes where 0 may.
        """
        most = amount if burst is None else burst
        return cls(amount / MINUTE_S, max(most, 1.0) if amount else 0.0)

    def wait_s(self, now_s: float) -> float:
        """Return how long until there is one to use; 0 when there is, infinite when never."""
        self._fill(now_s)
        if self._left >= 1.0:
            return 0.0
        return (1.0 - self._left) / self._per_s if self._per_s else math.inf

    def use(self, amount: float = 1.0) -> None:
        """Use some, also what is not there; it is refilled from the last look on."""
        self._left -= amount

    def take(self, now_s: float) -> bool:
        """Return True and use one when there is one."""
        if self.wait_s(now_s):
            return False
        self.use()
        return True

    def _fill(self, now_s: float) -> None:
        since_s = now_s if self._at_s is None else self._at_s
        self._left = min(self._most, self._left + max(0.0, now_s - since_s) * self._per_s)
        self._at_s = max(since_s, now_s)
