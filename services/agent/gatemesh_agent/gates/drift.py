"""Whole-instance drift: many answers of one life that lean the same way, none of them proof. Pure.

Each answer's figures become normal scores against the pool's baseline. Two-sided CUSUM charts add
them up: one chart for each figure, direction and size of shift.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import NamedTuple, Protocol

from gatemesh_agent.gates.pool_baseline import Metric, Normal

WATCHED = (
    Metric.NLL_16,
    Metric.NLL_WHOLE,
    Metric.ENTROPY_16,
    Metric.ENTROPY_WHOLE,
    Metric.TOP1_WHOLE,
    Metric.ENTROPY_CAPPED,
)
CHARTS = ((0.5, 13.0), (1.0, 7.0))
"""Allowance and limit: slow shifts, large shifts. Calibrated by simulation, see docs/gates.md."""
CAP = 1.5
"""Of the limit: so far a sum may rise, so that it can fall again in time."""
CALM = 0.5
"""Of the limit: below this a chart that tripped is quiet again."""
DEVIATES = 1.0
"""Score of an answer that leans clearly."""
SLACK = 2.5
"""Over the root of the answers that an entry was learnt from: what its median may be off by (two
standard errors, in normal scores). Added to the allowance, or a rough baseline would drift."""
RECENT_PROMPTS = 1024
"""A prompt counts once among so many."""
LIVES = 256
COMMON_ANSWERS = 8
"""Answers of another life from which on its lean counts."""
COMMON_LIVES = 17
"""Lives asked, the latest first: more would make an answer's cost grow with the pool."""
COMMON_WEIGHT = 1 / 16
COMMON_FREE = 0.25
COMMON_MOST = 2.0
STALE_ANSWERS = 512
"""Answers of the pool after which a silent life no longer says what its traffic is like."""

Chart = tuple[Metric, int, int]
"""Figure, direction, and which of `CHARTS`."""


class Score(NamedTuple):
    """How unusual one figure of an answer is."""

    value: float
    """Normal score."""
    slack: float
    """What the baseline itself may be off by."""

    @classmethod
    def of(cls, normal: Normal, figure: float) -> "Score":
        """Score a figure."""
        return cls(normal.score(figure), SLACK / math.sqrt(max(normal.count, 1)))


@dataclass(frozen=True, slots=True)
class Lean:
    """An answer that leans the way its whole life does."""

    metric: Metric
    direction: int
    """1 above the baseline, -1 below."""
    level: float
    limit: float
    answers: int
    """Answers of this life that counted."""
    own: float
    """Score of this answer."""
    mean: float
    """Recent mean score of the life."""


class Drift(Protocol):
    """Where the scores of an answer go."""

    @property
    def tripped(self) -> bool:
        """True while such answers are no part of what is normal."""

    def take(self, scores: Mapping[Metric, Score], fingerprint: str | None) -> Lean | None:
        """Take in one answer; return how it leans, where that is held against it."""


@dataclass(slots=True)
class WitnessDrift:
    """Notes how unusual another instance's answer to the same prompt is; holds nothing against it.

    Traffic that grew harder leans everywhere; a damaged instance leans alone.
    """

    metric: Metric
    score: float | None = None
    """Normal score of its answer; None where it could not be measured."""

    @property
    def tripped(self) -> bool:
        """An answer given as a witness never becomes part of what is normal."""
        return True

    def take(self, scores: Mapping[Metric, Score], fingerprint: str | None) -> Lean | None:
        """Note the score."""
        score = scores.get(self.metric)
        self.score = None if score is None else score.value
        return None


class LifeDrift:
    """Follows the answers of one life."""

    def __init__(self, pool: "PoolDrift") -> None:
        self._pool = pool
        self._prompts: OrderedDict[str, None] = OrderedDict()
        self._sums: dict[Chart, float] = {}
        self._tripped: dict[Chart, None] = {}
        """In the order in which they tripped, so that of equals always the same one is told."""
        self.answers = 0
        self.seen_at = 0
        self.leans: dict[Metric, float] = {}
        """Recent mean score of each figure."""

    @property
    def tripped(self) -> bool:
        """True while the life is off its baseline."""
        return bool(self._tripped)

    def take(self, scores: Mapping[Metric, Score], fingerprint: str | None) -> Lean | None:
        """Take in one answer; return how it leans when the whole life leans the same way.

        A prompt that came lately is left out: one odd prompt, repeated, is no drift.
        """
        if not scores or self._repeated(fingerprint):
            return None
        self.answers += 1
        self.seen_at = self._pool.count()
        for metric, score in scores.items():
            before = self.leans.get(metric, 0.0)
            self.leans[metric] = before + COMMON_WEIGHT * (score.value - before)
            common = self._pool.common(metric, self)
            for direction in (1, -1):
                against = max(direction * common, 0.0) + score.slack
                self._add((metric, direction), direction * score.value - against)
        return self._lean(scores)

    def _repeated(self, fingerprint: str | None) -> bool:
        if fingerprint is None:
            return False
        known = fingerprint in self._prompts
        self._prompts[fingerprint] = None
        self._prompts.move_to_end(fingerprint)
        if len(self._prompts) > RECENT_PROMPTS:
            self._prompts.popitem(last=False)
        return known

    def _add(self, kind: tuple[Metric, int], score: float) -> None:
        for place, (allowance, limit) in enumerate(CHARTS):
            chart = (*kind, place)
            level = max(self._sums.get(chart, 0.0) + score - allowance, 0.0)
            self._sums[chart] = min(level, CAP * limit)
            if level > limit:
                self._tripped.setdefault(chart)
            elif level < CALM * limit:
                self._tripped.pop(chart, None)

    def _lean(self, scores: Mapping[Metric, Score]) -> Lean | None:
        leaning = [
            Lean(
                *(metric, sign, self._sums[chart], CHARTS[chart[2]][1], self.answers),
                own=scores[metric].value,
                mean=self._mean(metric),
            )
            for chart in self._tripped
            if (metric := chart[0]) in scores
            and (sign := chart[1]) * scores[metric].value >= DEVIATES
        ]
        return max(leaning, key=lambda lean: lean.level / lean.limit, default=None)

    def _mean(self, metric: Metric) -> float:
        """Return the recent mean of a figure; a sum that began at 0 says too little at first."""
        return self.leans[metric] / (1.0 - (1.0 - COMMON_WEIGHT) ** self.answers)


class PoolDrift:
    """The lives that one agent serves.

    What all lives lean to is the traffic's doing and not an instance's: the lean that the other
    lives show in the median makes a life's own charts rise more slowly. It never makes them rise.
    """

    def __init__(self) -> None:
        self._lives: OrderedDict[Hashable, LifeDrift] = OrderedDict()
        self._answers = 0

    def of(self, life: Hashable) -> LifeDrift:
        """Return what follows a life; a life never heard of begins calm."""
        found = self._lives.get(life)
        if found is None:
            found = self._lives[life] = LifeDrift(self)
        self._lives.move_to_end(life)
        if len(self._lives) > LIVES:
            self._lives.popitem(last=False)
        return found

    def count(self) -> int:
        """Count one answer of the pool; return how many there were."""
        self._answers += 1
        return self._answers

    def common(self, metric: Metric, apart: LifeDrift) -> float:
        """Return the lean of the other lives, beyond what chance gives, and bounded."""
        since = self._answers - STALE_ANSWERS
        leans = [
            life.leans.get(metric, 0.0)
            for life in islice(reversed(self._lives.values()), COMMON_LIVES)
            if life is not apart and life.answers >= COMMON_ANSWERS and life.seen_at > since
        ]
        lean = median(leans) if leans else 0.0
        beyond = max(abs(lean) - COMMON_FREE, 0.0)
        return min(beyond, COMMON_MOST) * (1 if lean > 0 else -1)
