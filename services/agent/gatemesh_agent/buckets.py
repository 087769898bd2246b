"""A token bucket: what may be used in a minute, refilled evenly. Pure: the time comes in."""

MINUTE_S = 60.0


class Bucket:
    """Holds a minute's worth; what was used more than it held is waited for."""

    __slots__ = ("_at_s", "_left", "_most", "_per_s")

    def __init__(self, per_min: float, now_s: float) -> None:
        self._most = float(per_min)
        self._per_s = per_min / MINUTE_S
        self._left = self._most
        self._at_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Return how long until there is one to use; 0 when there is."""
        if now_s > self._at_s:
            self._left = min(self._most, self._left + (now_s - self._at_s) * self._per_s)
            self._at_s = now_s
        return 0.0 if self._left >= 1.0 else (1.0 - self._left) / self._per_s

    def use(self, amount: float) -> None:
        """Use some; below nothing it is a debt."""
        self._left -= amount
