"""Mean entropy over the latest steps, at several lengths, against absolute limits. Nats."""

import math
from collections import deque
from functools import lru_cache
from typing import NamedTuple

from gatemesh_agent.gates.context import RequestContext
from gatemesh_common.messages import Decoding, Reason

USUAL_VOCAB_SIZE = 49_152
"""Taken where the engine's is not known."""
GREEDY_SHARES = ((16, 0.37), (32, 0.3), (48, 0.26))
SAMPLED_SHARES = ((16, 0.555), (32, 0.41), (48, 0.345))
"""Steps, and the share of `ln V` that their mean must not pass. Source: clean answers of a small
model, whose means are the highest seen, with a tenth to a fifth to spare (docs/gates.md)."""
SHORTEST = 4
SHORT_FACTOR = 1.5
CALM_STEPS = 32
"""Fewest steps that say what this answer was like before a jump."""
LONGEST_CALM = 64
CALM_SHARE = 0.074
JUMP_STEPS = 32
JUMP_SHARE = 0.278
KEPT = LONGEST_CALM + JUMP_STEPS
NO_SUMS = (0.0,) * (KEPT + 1)
QUIET_SHARE = 0.999
"""Far more than what rounding can add to a sum."""


class Excess(NamedTuple):
    """What a window found."""

    reason: Reason
    mean: float
    limit: float
    steps: int


class Limits(NamedTuple):
    """What windows are held against; in nats."""

    by_steps: tuple[tuple[int, float], ...]
    """Steps, and what they may add up to."""
    calm: float
    jump: float
    quiet: float
    """While the steps of the longest window add up to less, no window can be wide."""


@lru_cache(maxsize=256)
def limits_of(vocab_size: int, *, greedy: bool) -> Limits:
    """Return the limits for a vocabulary; the same for answer after answer."""
    nats = math.log(max(vocab_size, 2))
    shares = GREEDY_SHARES if greedy else SAMPLED_SHARES
    by_steps = tuple((steps, share * nats * steps) for steps, share in shares)
    jump = JUMP_SHARE * nats
    quiet = min(jump * JUMP_STEPS, *(limit for _, limit in by_steps)) * QUIET_SHARE
    return Limits(by_steps, CALM_SHARE * nats, jump, quiet)


class EntropyWindows:
    """Follows the entropy of one answer; O(1) for each step, whatever came before."""

    def __init__(self, context: RequestContext, vocab_size: int | None) -> None:
        greedy = context.decoding is Decoding.GREEDY
        limits = limits_of(vocab_size or USUAL_VOCAB_SIZE, greedy=greedy)
        self._limits, self._calm_limit, self._jump_limit, self._quiet = limits
        self._is_judged = context.temperature is None or context.temperature <= 1
        self._before_longest = -1 - self._limits[-1][0]
        """Where the sum stands that the longest window begins with."""
        self._total = 0.0
        self._taken = 0
        self._sums: deque[float] = deque(NO_SUMS, maxlen=KEPT + 1)
        """Of all steps up to each of the latest; a window's sum is the difference of two."""

    def take(self, entropy: float) -> Excess | None:
        """Take the next step; return what its windows prove."""
        total = self._total = self._total + entropy
        sums = self._sums
        sums.append(total)
        self._taken += 1
        if entropy < 0.0:
            # Then the longest window may hold less than a part of it.
            self._quiet = -math.inf
        if total - sums[self._before_longest] < self._quiet:
            return None
        return self._look(total, min(self._taken, KEPT)) if self._is_judged else None

    def _look(self, total: float, size: int) -> Excess | None:
        sums = self._sums
        for steps, limit in self._limits:
            if size < steps:
                break
            if total - sums[-1 - steps] > limit:
                mean = (total - sums[-1 - steps]) / steps
                return Excess(Reason.FLAT_DISTRIBUTION, mean, limit / steps, steps)
        return self._jump(size) if size >= CALM_STEPS + JUMP_STEPS else None

    def end(self) -> Excess | None:
        """Judge an answer that ended before the first window was full, by a stricter limit."""
        steps, limit = self._limits[0]
        size = min(self._taken, KEPT)
        if not self._is_judged or not SHORTEST <= size < steps:
            return None
        mean, strict = self._total / size, limit / steps * SHORT_FACTOR
        return Excess(Reason.FLAT_DISTRIBUTION, mean, strict, size) if mean > strict else None

    def _jump(self, size: int) -> Excess | None:
        """Find a window that is wild where the steps just before it were calm."""
        seam = self._sums[-1 - JUMP_STEPS]
        mean = (self._total - seam) / JUMP_STEPS
        if mean <= self._jump_limit:
            return None
        before = min(size - JUMP_STEPS, LONGEST_CALM)
        if seam - self._sums[-1 - JUMP_STEPS - before] > self._calm_limit * before:
            return None
        return Excess(Reason.ENTROPY_JUMP, mean, self._jump_limit, JUMP_STEPS)
