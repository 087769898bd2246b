"""Whether a life drifts or its traffic does, by pairs of answers to the same prompts. Pure.

One answer of a healthy instance settles nothing about a lean that no single answer of the accused
proves. Many pairs do: where the traffic leans, witnesses lean as much; where the life is damaged,
they do not, or by less. Both stories are compared by their likelihoods, each at the correlation
between two answers to one prompt that suits it best, since nobody knows that one.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gatemesh_agent.gates.drift import WitnessDrift
from gatemesh_agent.reporting import Life
from gatemesh_common.messages import Attribution, Reason, Verdict

CORRELATIONS = (0.0, 0.3, 0.6, 0.8, 0.9)
"""Between scores of two healthy answers to one prompt: near 1 greedily, less for drawn tokens."""
PROOF = 7.0
"""Log of the ratio from which the life is to blame: traffic rarely looks like that (1 in 1,100)."""
DOUBT = -3.0
"""Log of the ratio down to which it is not the traffic."""
FEWEST_PAIRS = 3
MOST_PAIRS = 32
SMALLEST_LEAN = 0.5
"""What the slow charts allow for: a smaller lean is no story to compare."""
RULING_S = 60.0
"""For so long a ruling holds without another pair."""
PAIR_S = 600.0
MOST_SUSPICIONS = 256


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A life said to lean, in one figure and one direction."""

    life: Life
    metric: str
    direction: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Scores of two answers to one prompt, in the direction of the lean."""

    accused: float
    witness: float
    at_s: float


@dataclass(slots=True)
class Trial:
    """What is known of one suspicion."""

    pairs: deque[Pair] = field(default_factory=lambda: deque(maxlen=MOST_PAIRS))
    ruling: Attribution = Attribution.UNKNOWN
    ruled_s: float = -math.inf


def suspicion_of(verdict: Verdict, life: Life) -> Suspicion | None:
    """Return what a drift says of a life; None for any other failure."""
    if verdict.reason is not Reason.DRIFT:
        return None
    details = verdict.details
    return Suspicion(life, str(details["metric"]), int(details["direction"]))


class Jury:
    """Hears pairs, and rules on suspicions."""

    def __init__(self) -> None:
        self._trials: OrderedDict[Suspicion, Trial] = OrderedDict()

    def hear(
        self, suspicion: Suspicion, details: dict[str, Any], witness: WitnessDrift, now_s: float
    ) -> None:
        """Take in what a witness answered to the prompt of an accused answer.

        `details` are those of the verdict on that one: `life_score`, the mean of its life, and
        `answer_score`, its own.
        """
        if witness.score is None:
            return
        sign, trial = suspicion.direction, self._trial(suspicion)
        pair = Pair(sign * details["answer_score"], sign * witness.score, now_s)
        fresh = [each for each in trial.pairs if now_s - each.at_s <= PAIR_S]
        trial.pairs = deque([*fresh, pair], maxlen=MOST_PAIRS)
        evidence = evidence_of(trial.pairs, max(sign * details["life_score"], SMALLEST_LEAN))
        if len(trial.pairs) < FEWEST_PAIRS or DOUBT < evidence < PROOF:
            return
        trial.ruled_s = now_s
        trial.ruling = Attribution.INSTANCE if evidence >= PROOF else Attribution.REQUEST
        if trial.ruling is Attribution.REQUEST:
            # What comes later is another matter, and must not be drowned in these.
            trial.pairs.clear()

    def rule(self, suspicion: Suspicion, now_s: float) -> Attribution:
        """Return whose doing a lean is; unknown while the pairs do not tell, or are too old."""
        trial = self._trials.get(suspicion)
        if trial is None or now_s - trial.ruled_s > RULING_S:
            return Attribution.UNKNOWN
        return trial.ruling

    def _trial(self, suspicion: Suspicion) -> Trial:
        trial = self._trials.setdefault(suspicion, Trial())
        self._trials.move_to_end(suspicion)
        if len(self._trials) > MOST_SUSPICIONS:
            self._trials.popitem(last=False)
        return trial


def evidence_of(pairs: Iterable[Pair], lean: float) -> float:
    """Return the log of how much likelier pairs are where the life leans by itself.

    By all of `lean`, or by half of it on top of the traffic's other half.
    """
    known = tuple(pairs)
    damaged = max(likelihood(known, lean, 0.0), likelihood(known, lean, lean / 2))
    return damaged - likelihood(known, lean, lean)


def likelihood(pairs: tuple[Pair, ...], lean: float, shared: float) -> float:
    """Return the log likelihood of witnesses that lean by `shared`, at the best correlation."""
    return max(_log_density(pairs, lean, shared, each) for each in CORRELATIONS)


def _log_density(pairs: tuple[Pair, ...], lean: float, shared: float, correlation: float) -> float:
    # Given the accused's own score: that it was chosen for being high then does not matter.
    variance = 1.0 - correlation**2
    squares = sum(
        (pair.witness - shared - correlation * (pair.accused - lean)) ** 2 for pair in pairs
    )
    return -0.5 * (squares / variance + len(pairs) * math.log(variance))
