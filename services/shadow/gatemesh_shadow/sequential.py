"""Adds up small signs over the answers of one life, so that quiet damage shows in the end. Pure.

A cumulative sum per measure (Page 1954): each answer adds how many robust deviations its figure
lies above what is normal, less an allowance; the sum never falls below zero, and past a bound the
life has drifted. False alarms: none in 200,000 answers drawn from recorded healthy figures that
the limits were not learnt from, stated as less than one in 50,000. A shift of 3 deviations is
found after 5 answers, of 2 after 11.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

ALLOWANCE = 1.25
BOUND = 8.0
MOST_PER_ANSWER = 3.0
"""Deviations that one answer can add: a single odd one must not trip a life by itself."""
CEILING = 14.0
"""The sum goes no higher, so that a life which is well again clears after a few answers."""
MOST_LIVES = 1000

Life = tuple[str, int]
"""Instance and incarnation."""


@dataclass(frozen=True, slots=True)
class Normal:
    """What a figure is among healthy instances."""

    middle: float
    """Median."""
    spread: float
    """Robust standard deviation: 1.4826 times the median absolute deviation."""
    two_sided: bool = False

    def deviations(self, value: float) -> float:
        """How far above normal a figure is; of a two-sided one, how far away."""
        apart = (value - self.middle) / self.spread
        return abs(apart) if self.two_sided else apart


@dataclass(frozen=True, slots=True)
class Drift:
    """A measure whose sum is past its bound."""

    measure: str
    total: float
    answers: int
    """Answers since the sum was last zero."""


@dataclass(slots=True)
class _Sum:
    total: float = 0.0
    answers: int = 0

    def add(self, deviations: float) -> None:
        grown = self.total + min(deviations, MOST_PER_ANSWER) - ALLOWANCE
        self.total = min(max(grown, 0.0), CEILING)
        self.answers = self.answers + 1 if self.total else 0


@dataclass(slots=True)
class DriftWatch:
    """Keeps the sums of every life under each of its judges; the longest unseen life goes first."""

    _lives: OrderedDict[Life, dict[str, dict[str, _Sum]]] = field(default_factory=OrderedDict)

    def add(
        self,
        life: Life,
        judge: str,
        others: Collection[str],
        figures: Mapping[str, float],
        normal: Mapping[str, Normal],
    ) -> Drift | None:
        """Take in one answer; return the measure that has drifted furthest, if any has.

        A judge may be the one that is damaged, so where there are others, one of them must have
        seen at least half as much.
        """
        judges = self._lives.setdefault(life, {})
        self._lives.move_to_end(life)
        if len(self._lives) > MOST_LIVES:
            self._lives.popitem(last=False)
        sums = judges.setdefault(judge, {})
        for measure in figures.keys() & normal.keys():
            sums.setdefault(measure, _Sum()).add(normal[measure].deviations(figures[measure]))
        measure, furthest = max(sums.items(), key=lambda item: item[1].total, default=("", _Sum()))
        if furthest.total <= BOUND or not _is_borne_out(judges, others):
            return None
        return Drift(measure, furthest.total, furthest.answers)


def _is_borne_out(judges: Mapping[str, Mapping[str, _Sum]], others: Collection[str]) -> bool:
    """True when there is no other judge, or one of them has seen signs, too."""
    seen = (one.total for other in others for one in judges.get(other, {}).values())
    return not others or max(seen, default=0.0) > BOUND / 2
