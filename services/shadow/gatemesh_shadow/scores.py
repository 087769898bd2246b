"""What a healthy instance thinks of another one's tokens, in a few figures. Pure.

Both sides report raw log probabilities of the same tokens, so their difference is rounding between
healthy instances and an estimate of how far the two distributions are apart otherwise. That is much
tighter than any limit on perplexity, and it does not depend on the prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from statistics import fmean
from typing import Any

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason

GATE_VERSION = "1"
LEAST_TOKENS = 3
FULL_TOKENS = 24
"""From so many tokens on the limits hold as they are; shorter answers get wider ones."""
WORST_NATS = 50.0
"""No single token counts for more; an engine clamps what it finds impossible."""
LEAST_GUESSED_TOKENS = 8
GUESSED_ODD = 2
"""Tokens of a text whose ids nobody told that are left out, the worst ones, beside those that are a
matter of spelling: of what is no readable character the spelling cannot be told."""
GUESSED_REGRET = 0.25
"""Limit of the regret of such a text. Source: clean greedy answers of a 135M model in another
spelling have at most 0.20 (53 answers), in their own 0.0; with two layers swapped 14 of 14 fail."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One answer as a healthy instance sees it; all in nats per token."""

    tokens: int
    nll: float
    """Mean of -log p under the healthy instance."""
    difference: float | None = None
    """Mean of own minus healthy log probability; None where its own are not known."""
    distance: float | None = None
    """Mean of the absolute difference."""
    regret: float | None = None
    """How much likelier the healthy instance's favourite was, on average; greedy answers only."""
    worst_regret: float | None = None
    """The same at the worst token."""
    guessed: bool = False
    """True when the ids are those that the text has by itself, not those the engine told."""

    def measures(self) -> dict[str, float]:
        """The figures that are known, by name."""
        named = {name: getattr(self, name) for name in MEASURES}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ScoreLimits:
    """From where on the figures of one answer are a failure, in nats per token."""

    nll: float
    difference: float
    distance: float
    regret: float
    worst_regret: float
    source: str = "default"
    """`default`, or `calibrated` for this pool and model version."""


DEFAULT_LIMITS: Mapping[Decoding, ScoreLimits] = {
    Decoding.GREEDY: ScoreLimits(2.5, 0.10, 0.15, 0.10, 1.0),
    Decoding.SAMPLED: ScoreLimits(5.5, 0.15, 0.25, 9.0, 99.0),
}
"""Until A/A has measured better ones. Source: 60 clean answers of a 135M model in bf16, scored in
fp32: distance at most 0.04 greedy and 0.06 sampled, worst regret at most 0.28; one attention block
silent has 0.18 and 0.31, and 1.2 (medians)."""


def figures_of(
    replica: Sequence[float],
    favourite: Sequence[float],
    own: Sequence[float | None] | None,
    *,
    greedy: bool,
) -> Figures:
    """Sum up one answer; all lists are log probabilities (nats), one per token."""
    chosen = [max(one, -WORST_NATS) for one in replica]
    count = len(chosen)
    apart = _differences(own, chosen)
    regrets = [best - one for best, one in zip(favourite, chosen, strict=True)] if greedy else []
    return Figures(
        tokens=count,
        nll=-sum(chosen) / count,
        difference=sum(apart) / count if apart else None,
        distance=sum(map(abs, apart)) / count if apart else None,
        regret=sum(regrets) / count if regrets else None,
        worst_regret=max(regrets) if regrets else None,
    )


def guessed_figures(
    replica: Sequence[float],
    favourite: Sequence[float],
    spelling: Sequence[bool],
    *,
    greedy: bool,
) -> Figures:
    """Sum up a text whose ids nobody told, without what is a matter of spelling."""
    told = [
        (max(chosen, -WORST_NATS), best)
        for chosen, best, is_spelling in zip(replica, favourite, spelling, strict=True)
        if not is_spelling
    ]
    kept = sorted((one for one, _ in told), reverse=True)[: max(len(told) - GUESSED_ODD, 1)]
    regrets = sorted(best - one for one, best in told)[: len(kept)] if greedy else []
    return Figures(
        tokens=len(kept),
        nll=-fmean(kept) if kept else 0.0,
        regret=sum(regrets) / len(replica) if regrets else None,
        guessed=True,
    )


def _differences(own: Sequence[float | None] | None, replica: Sequence[float]) -> list[float]:
    """Own minus replica; none where not every own one is known."""
    if own is None or len(own) != len(replica):
        return []
    known = [max(one, -WORST_NATS) for one in own if one is not None and isfinite(one)]
    return (
        [one - other for one, other in zip(known, replica, strict=False)]
        if (len(known) == len(replica))
        else []
    )


def judge_figures(figures: Figures, limits: ScoreLimits) -> Judgement:
    """Judge one answer by the healthy instance's figures; the first one past its limit counts."""
    if figures.guessed:
        limits = replace(limits, regret=max(limits.regret, GUESSED_REGRET))
    details = {
        "measure": "replica_score",
        "tokens": figures.tokens,
        "limits": limits.source,
        **{name: round(value, 4) for name, value in figures.measures().items()},
        **({"ids": "guessed"} if figures.guessed else {}),
    }
    if figures.tokens < (LEAST_GUESSED_TOKENS if figures.guessed else LEAST_TOKENS):
        return _judgement(Outcome.SKIPPED, Reason.TOO_SHORT, None, None, details)
    for name in MEASURES:
        value, limit = getattr(figures, name), widened(getattr(limits, name), figures.tokens)
        if value is not None and abs(value) > limit:
            broken = {**details, "broken": name}
            return _judgement(Outcome.FAILED, Reason.REPLICA_DISAGREES, value, limit, broken)
    name = next(one for one in MEASURES if getattr(figures, one) is not None)
    limit = widened(getattr(limits, name), figures.tokens)
    return _judgement(Outcome.PASSED, Reason.CLEAN, getattr(figures, name), limit, details)


MEASURES = ("distance", "difference", "worst_regret", "regret", "nll")
"""In the order in which they are looked at: the tightest first."""


def widened(limit: float, tokens: int) -> float:
    """A limit for an answer of so many tokens: the mean of few is noisier."""
    return limit * max(1.0, sqrt(FULL_TOKENS / tokens))


def _judgement(
    outcome: Outcome,
    reason: Reason,
    score: float | None,
    limit: float | None,
    details: Mapping[str, Any],
) -> Judgement:
    return Judgement(
        CheckLevel.L4,
        outcome,
        reason,
        score=score,
        threshold=limit,
        gate_version=GATE_VERSION,
        details=details,
    )
