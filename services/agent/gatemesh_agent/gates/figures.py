"""Figures of one choice, added up token by token: what L2 compares with the pool's baseline."""

import math
from collections import Counter
from math import exp

from gatemesh_agent.gates.pool_baseline import Metric
from gatemesh_agent.gates.scripts import script_of

SHORT_WINDOW = 16
LONG_WINDOW = 64
SHORTEST_STEPS = 8
"""Fewer steps say nothing about an answer as a whole."""
SCRIPT_STEPS = 32
"""Steps whose text decides about the script."""
CALM_NATS = 0.5
"""Entropy at which a step counts as unsure, where the question is how often an engine is sure."""
MOST_NATS = 25.0
"""A surprisal beyond is counted as this: engines write clamps such as 9999."""

NO_LETTERS = "none"
MIXED = "mixed"
CODE = "code"
MAIN_SHARE = 0.6
KANA_SHARE = 0.1


class Figures:
    """Adds up one choice; the cost of a token does not grow with the answer."""

    __slots__ = (
        "_calm",
        "_entropies",
        "_entropy",
        "_entropy16",
        "_high16",
        "_high64",
        "_high_entropy16",
        "_low64",
        "_nats",
        "_nll",
        "_nll16",
        "_nll64",
        "_script",
        "_texts",
        "_top",
        "high16_end",
        "high64_end",
        "knows_entropy",
        "tokens",
    )

    def __init__(self) -> None:
        self.tokens = 0
        self.high16_end = self.high64_end = 0
        """Token after the most surprising window."""
        self.knows_entropy = True
        """False once an engine told of too few candidates: by them alone it would seem low."""
        self._nll = self._nll16 = self._nll64 = 0.0
        self._entropy = self._entropy16 = self._top = self._calm = 0.0
        self._high16 = self._high64 = self._high_entropy16 = 0.0
        self._low64 = math.inf
        self._nats = [0.0] * LONG_WINDOW
        self._entropies = [0.0] * SHORT_WINDOW
        self._texts: list[str] = []
        self._script: str | None = None

    def take(self, text: str, nll: float, entropy: float, top: float) -> bool:
        """Take one step: text, surprisal, entropy (nats), log probability of the likeliest.

        Returns True when a window is the most surprising one so far.
        """
        at = self.tokens
        if at < SCRIPT_STEPS:
            self._texts.append(text)
        if nll > MOST_NATS:  # noqa: PLR1730 (half the time of min)
            nll = MOST_NATS
        nats, entropies = self._nats, self._entropies
        self._nll += nll
        self._entropy += entropy
        self._calm += entropy if entropy < CALM_NATS else CALM_NATS
        self._top += exp(top)
        self._nll16 += nll - nats[at - SHORT_WINDOW & LONG_WINDOW - 1]
        slot = at & LONG_WINDOW - 1
        self._nll64 += nll - nats[slot]
        nats[slot] = nll
        slot = at & SHORT_WINDOW - 1
        self._entropy16 += entropy - entropies[slot]
        entropies[slot] = entropy
        self.tokens = at = at + 1
        rose = False
        if at >= SHORT_WINDOW:
            if self._nll16 > self._high16:
                self._high16, self.high16_end, rose = self._nll16, at, True
            if self._entropy16 > self._high_entropy16:  # noqa: PLR1730 (half the time of max)
                self._high_entropy16 = self._entropy16
            if at >= LONG_WINDOW:
                return self._long() or rose
        return rose

    def _long(self) -> bool:
        if self._nll64 < self._low64:  # noqa: PLR1730 (half the time of min)
            self._low64 = self._nll64
        if self._nll64 <= self._high64:
            return False
        self._high64, self.high64_end = self._nll64, self.tokens
        return True

    @property
    def high16(self) -> float:
        """The most surprising window of 16 tokens so far, nats per token."""
        return self._high16 / SHORT_WINDOW

    @property
    def high64(self) -> float:
        """The most surprising window of 64 tokens so far, nats per token."""
        return self._high64 / LONG_WINDOW

    @property
    def script(self) -> str:
        """Main script of the beginning; fixed once that many steps were seen."""
        if self._script is not None:
            return self._script
        found = main_script("".join(self._texts))
        if self.tokens >= SCRIPT_STEPS:
            self._script = found
        return found

    def values(self) -> dict[Metric, float]:
        """Return each figure that the answer is long enough for."""
        count = self.tokens
        if count < SHORTEST_STEPS:
            return {}
        found = {
            Metric.NLL_WHOLE: self._nll / count,
            Metric.ENTROPY_WHOLE: self._entropy / count,
            Metric.TOP1_WHOLE: self._top / count,
            Metric.ENTROPY_CAPPED: self._calm / count,
        }
        if count >= SHORT_WINDOW:
            found[Metric.NLL_16] = self.high16
            found[Metric.ENTROPY_16] = self._high_entropy16 / SHORT_WINDOW
        if count >= LONG_WINDOW:
            found[Metric.NLL_64] = self.high64
            found[Metric.NLL_64_LOW] = max(self._low64 / LONG_WINDOW, 0.0)
        if not self.knows_entropy:
            return {metric: value for metric, value in found.items() if metric not in ENTROPIES}
        return found


ENTROPIES = frozenset({Metric.ENTROPY_WHOLE, Metric.ENTROPY_CAPPED, Metric.ENTROPY_16})


def main_script(text: str) -> str:
    """Name what a text is written in; texts with a code fence are a kind of their own."""
    if "```" in text:
        return CODE
    if text.isascii():
        # All letters are of one script; counting them takes longer than judging some tokens.
        return next((script_of(sign) for sign in text if sign.isalpha()), NO_LETTERS)
    counts = Counter([script_of(sign) for sign in text if sign.isalpha()])
    if not counts:
        return NO_LETTERS
    letters = counts.total()
    if counts["kana"] >= KANA_SHARE * letters:
        return "kana"
    script, most = counts.most_common(1)[0]
    return script if most >= MAIN_SHARE * letters else MIXED
