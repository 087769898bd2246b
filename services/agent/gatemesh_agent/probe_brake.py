"""How often an instance may be probed. Pure."""

from collections import defaultdict, deque
from dataclasses import dataclass, field

WINDOW_S = 60.0


@dataclass
class Brake:
    """Lets so many suites per minute through for each instance."""

    per_min: int
    _begun: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def wait_s(self, instance_id: str, now: float) -> float:
        """Return how long the next suite has to wait; 0 when it may begin, which then counts."""
        begun = self._begun[instance_id]
        while begun and now - begun[0] >= WINDOW_S:
            begun.popleft()
        if len(begun) >= self.per_min:
            return WINDOW_S - (now - begun[0])
        begun.append(now)
        return 0.0

    def forget_others(self, instance_ids: set[str]) -> None:
        """Drop what is known of instances that are gone."""
        for gone in self._begun.keys() - instance_ids:
            del self._begun[gone]
