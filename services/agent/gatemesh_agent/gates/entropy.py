"""Bounds on the entropy of a whole vocabulary from its likeliest tokens. All figures in nats."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from math import exp
from operator import mul
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


measure_of: Callable[[tuple[float, ...]], Measure] = partial(tuple.__new__, Measure)
"""Makes one of its figures, in order; a third of the price of naming them."""


def known_ranks(top: Sequence[float | None]) -> list[float]:
    """Return the known log probabilities, largest first, none missing between two of them.

    The engine names the sampled token first. Where it lies below all others, ranks between may be
    missing, so it is left out.
    """
    try:
        # A null cannot be sorted; looking for one first takes longer than the sorting.
        ranks: list[float] = sorted(top, reverse=True)  # type: ignore[arg-type]
    except TypeError:
        return known_ranks([value for value in top if value is not None])
    if len(ranks) > 1:
        if top[0] == ranks[-1] < ranks[-2]:
            ranks.pop()
    elif ranks and ranks[0] is None:
        return []
    return ranks


def measure(step: TokenStep, *, drawn: bool = True) -> Measure:
    """Measure one step whose figures are numbers.

    Where nothing was drawn the variance, which only fair draws are held against, is left at 0.
    """
    # Taken apart once: five looks by name take as long as a sum over all candidates.
    _, chosen, top, complete, _ = step
    ranks = known_ranks(top)
    if chosen is None or len(ranks) < 2:  # noqa: PLR2004
        return measure_alone(ranks[0] if chosen is None else chosen)
    last = ranks[-1]
    weighty = ranks if last >= NEGLIGIBLE else list(takewhile(is_weighty, ranks))
    # Sums over whole lists take a third of the time of a loop; they add up in the same order.
    shares = list(map(exp, weighty))
    products = list(map(mul, shares, weighty))
    mass = sum(shares, 0.0)
    entropy = 0.0 - sum(products, 0.0)
    tail = 1.0 - mass if mass < 1.0 else 0.0
    if not complete and tail > 0.0:
        # One lost token may hold the whole tail.
        lower = entropy - tail * math.log(tail)
    else:
        # A clamp such as -9999 bounds nothing: with a tail beside it, it is no figure of a rank.
        lower = entropy - tail * (weighty[-1] if weighty else 0.0)
    clip = -last
    mean = entropy + tail * clip
    surprisal = clip if clip < -chosen else -chosen
    variance = 0.0
    if drawn:
        variance = sum(map(mul, products, weighty), 0.0) + tail * clip * clip - mean * mean
    best = ranks[0]
    return measure_of(
        (
            lower,
            best,
            best - chosen,
            surprisal - mean,
            0.0 if variance < 0.0 else variance,
            clip,
            best - last,
            len(ranks),
            mass,
        )
    )


def is_weighty(value: float) -> bool:
    """Return True for a log probability that counts in a sum."""
    return not value < NEGLIGIBLE


def measure_alone(chosen: float) -> Measure:
    """Measure a step of which only the chosen token is known: it against all others."""
    share = math.exp(min(chosen, 0.0))
    rest = 1.0 - share
    lower = -(share * chosen) - (rest * math.log(rest) if rest > 0.0 else 0.0)
    return Measure(max(lower, 0.0), chosen, 0.0, 0.0, 0.0, 0.0, 0.0, 1, share)
