"""Rates that are kept by counting what is left. Pure."""


class Bucket:
    """Lets so many through in a second, and as many at once, or as many as are saved up."""

    def __init__(self, per_s: float, saved: float = 1.0) -> None:
        self._per_s = per_s
        self._most = max(per_s, saved, 1.0) if per_s else 0.0
        self._left = self._most
        self._at_s = 0.0

    def take(self, now_s: float) -> bool:
        """Return True and count one when there is room."""
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
