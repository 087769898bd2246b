"""How the scores of instances went while the console watched."""

from collections import deque
from collections.abc import Iterable, Sequence

from gatemesh_console.paging import Row

KEPT = 60
MOST_INSTANCES = 5000
WIDTH, HEIGHT = 96.0, 24.0
FULL_SCORE = 100.0


class Scores:
    """The latest scores of each instance, in memory; those that are gone are forgotten."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[float]] = {}

    def look(self, rows: Iterable[Row]) -> None:
        """Keep one more score of each instance."""
        now = {str(row["instance_id"]): float(row["score"]) for row in rows}
        for gone in self._kept.keys() - now.keys():
            del self._kept[gone]
        for name, score in now.items():
            self._kept.setdefault(name, deque(maxlen=KEPT)).append(score)

    def of(self, instance_id: str) -> tuple[float, ...]:
        """Return the scores of one instance, oldest first."""
        return tuple(self._kept.get(instance_id, ()))


def polyline(scores: Sequence[float]) -> str:
    """Return the points of a small line from 0 to 100, newest at the right edge."""
    step = WIDTH / (KEPT - 1)
    left = WIDTH - step * (len(scores) - 1)
    return " ".join(
        f"{left + step * place:.1f},{height_of(score):.1f}" for place, score in enumerate(scores)
    )


def height_of(score: float) -> float:
    """Return how far below the upper edge a score is drawn."""
    return HEIGHT * (1 - min(max(score, 0.0), FULL_SCORE) / FULL_SCORE)
