"""When each token is due."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Time to the first token, and tokens per second after it; 0: at once."""

    first_token_s: float = 0.0
    tokens_per_s: float = 0.0
    slow_from: int | None = None
    """The token after which the answer slows down; None: it never does."""
    slow_tokens_per_s: float = 1.0

    @property
    def is_instant(self) -> bool:
        """True when nothing is ever waited for."""
        return not self.first_token_s and not self.tokens_per_s and self.slow_from is None

    def due_s(self, place: int) -> float:
        """Seconds from the start of the request to the token at `place`."""
        gap_s = 1 / self.tokens_per_s if self.tokens_per_s else 0.0
        slow = 0 if self.slow_from is None else max(0, place - self.slow_from)
        return self.first_token_s + (place - slow) * gap_s + slow / self.slow_tokens_per_s

    async def reach(self, place: int, begun_s: float, clock: Callable[[], float]) -> None:
        """Wait until the token at `place` is due; let others run in any case."""
        wait_s = 0.0 if self.is_instant else begun_s + self.due_s(place) - clock()
        await asyncio.sleep(max(0.0, wait_s))
