"""Bounds on the entropy of a whole vocabulary from its likeliest tokens. All figures in nats."""

import math
from typing import NamedTuple

from gatemesh_agent.gates.steps import TokenStep

NEGLIGIBLE = -40.0
"""Log probability below which a token adds nothing to any sum."""


class Measure(NamedTuple):
    """What the reported part of one distribution proves."""

    lower: float
    """The entropy is at least this."""
    top: float
    """Log probability of the likeliest token."""
    gap: float
    """How far the chosen token lies below the likeliest."""
    excess: float
    """Surprisal of the chosen token, clipped at that of the last known rank, less its mean."""
    variance: float
    """Variance of the clipped surprisal."""
    clip: float
    """The largest value that the clipped surprisal can take."""
    spread: float
    """Log probability of the likeliest less that of the last known rank."""
    known: int
    """Ranks known."""
    mass: float
    """Probability of the known ranks together."""


def known_ranks(step: TokenStep) -> list[float]:
    """Return the known log probabilities, largest first, none missing between two of them.

    The engine names the sampled token first. Where it lies below all others, ranks between may be
    missing, so it is left out.
    """
    ranks = [value for value in step.top_logprobs if value is not None]
    if len(ranks) > 1:
        sampled = ranks[0]
        ranks.sort(reverse=True)
        if sampled == ranks[-1] < ranks[-2]:
            ranks.pop()
    return ranks


def measure(step: TokenStep) -> Measure:
    """Measure one step whose figures are numbers."""
    chosen = step.chosen_logprob
    ranks = known_ranks(step)
    if chosen is None or len(ranks) < 2:  # noqa: PLR2004
        return measure_alone(ranks[0] if chosen is None else chosen)
    exp = math.exp
    mass = entropy = square = 0.0
    for value in ranks:
        if value < NEGLIGIBLE:
            break
        share = exp(value)
        mass += share
        entropy -= share * value
        square += share * value * value
    tail = 1.0 - mass if mass < 1.0 else 0.0
    last = ranks[-1]
    if not step.complete and tail > 0.0:
        # One lost token may hold the whole tail.
        lower = entropy - tail * math.log(tail)
    else:
        lower = entropy - tail * last
    clip = -last
    mean = entropy + tail * clip
    surprisal = min(-chosen, clip)
    return Measure(
        lower=lower,
        top=ranks[0],
        gap=ranks[0] - chosen,
        excess=surprisal - mean,
        variance=max(square + tail * clip * clip - mean * mean, 0.0),
        clip=clip,
        spread=ranks[0] - last,
        known=len(ranks),
        mass=mass,
    )


def measure_alone(chosen: float) -> Measure:
    """Measure a step of which only the chosen token is known: it against all others."""
    share = math.exp(min(chosen, 0.0))
    rest = 1.0 - share
    lower = -(share * chosen) - (rest * math.log(rest) if rest > 0.0 else 0.0)
    return Measure(max(lower, 0.0), chosen, 0.0, 0.0, 0.0, 0.0, 0.0, 1, share)
