"""Answers of healthy instances that are kept, to tell later whether an instance still is one. Pure.

Prompt, answer and the answer's own log probabilities are taken while two instances agree. An
instance that scores the same tokens otherwise now than was reported then is damaged, whoever else
is there to ask: the only check in which nobody has to be believed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from statistics import median
from typing import Any

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import CheckLevel, Outcome, Reason
from gatemesh_shadow.scores import Figures, ScoreLimits, judge_figures
from gatemesh_shadow.sequential import Normal

FORMAT = 1
MEASURE = "references"
MOST_KEPT = 8
LEAST_KEPT = 2
"""Fewer prove nothing: one odd token would."""
PER_ROUND = 3
MOST_PROMPT_TOKENS = 512
MOST_ANSWER_TOKENS = 32
LEAST_ANSWER_TOKENS = 8
UNUSUAL = 2.0
"""Median robust deviations of a round from which on an instance may be the one that drifts."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One greedy answer of a healthy instance."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    own: tuple[float, ...]
    """Log probability (nats) of each answer token as the instance reported it."""

    @property
    def is_usable(self) -> bool:
        """True when it is long enough to say something, short enough to be cheap, and whole."""
        return (
            0 < len(self.prompt) <= MOST_PROMPT_TOKENS
            and LEAST_ANSWER_TOKENS <= len(self.answer) <= MOST_ANSWER_TOKENS
            and len(self.own) == len(self.answer)
            and all(map(isfinite, self.own))
        )


@dataclass(frozen=True, slots=True)
class References:
    """What is kept of one model version."""

    model: str = ""
    """Name under which the instances serve it."""
    kept: tuple[Reference, ...] = ()

    @property
    def suffice(self) -> bool:
        """True when there are enough for a conclusion."""
        return len(self.kept) >= LEAST_KEPT

    def for_round(self, number: int) -> tuple[Reference, ...]:
        """The ones that are asked in a round; each round goes on where the last one ended."""
        count = min(PER_ROUND, len(self.kept))
        return tuple(self.kept[(number * PER_ROUND + at) % len(self.kept)] for at in range(count))


class Standing(StrEnum):
    """How an instance stands to the references."""

    AGREES = "agrees"
    DEVIATES = "deviates"
    UNCLEAR = "unclear"
    """Some deviate, or too few were answered."""
    UNKNOWN = "unknown"
    """There are no references."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """An instance's standing, and the judgement of its worst reference where one was scored."""

    standing: Standing
    judgement: Judgement


def reference_of(
    prompt: Sequence[int], answer: Sequence[int], own: Sequence[float | None]
) -> Reference | None:
    """A reference from one healthy answer; None where it would not be usable."""
    known = tuple(round(one, 6) for one in own if one is not None and isfinite(one))
    if len(known) != len(own):
        return None
    found = Reference(tuple(prompt), tuple(answer), known)
    return found if found.is_usable else None


def choose(
    model: str, candidates: Sequence[tuple[Reference, Figures]], limits: ScoreLimits
) -> References:
    """Keep the longest of those that pass by the limits themselves; of equals the first."""
    good = [
        one
        for one, figures in candidates
        if judge_figures(figures, limits).outcome is Outcome.PASSED
    ]
    return References(model, tuple(sorted(good, key=lambda one: -len(one.answer))[:MOST_KEPT]))


def weigh(scored: Sequence[Figures | None], limits: ScoreLimits) -> Weighed:
    """Weigh one round; None stands for an answer whose figures were no numbers.

    More than half must deviate, so that one odd answer convicts nobody; all must agree, so that
    one odd answer clears nobody.
    """
    judged = [_broken() if one is None else judge_figures(one, limits) for one in scored]
    failed = [one for one in judged if one.outcome is Outcome.FAILED]
    standing = Standing.UNCLEAR
    if len(judged) >= LEAST_KEPT:
        standing = _standing(len(failed), len(judged))
    worst = max(failed or judged, key=_excess, default=_none_scored())
    counts = {"measure": MEASURE, "scored": len(judged), "failed": len(failed)}
    details = {**worst.details, **counts, "by": MEASURE}
    outcome, reason = CONCLUSIONS[standing]
    found = replace(worst, outcome=outcome, reason=reason, details=details)
    return Weighed(standing, found)


CONCLUSIONS = {
    Standing.AGREES: (Outcome.PASSED, Reason.CLEAN),
    Standing.DEVIATES: (Outcome.FAILED, Reason.REPLICA_DISAGREES),
    Standing.UNCLEAR: (Outcome.SKIPPED, Reason.NOT_COMPARABLE),
    Standing.UNKNOWN: (Outcome.SKIPPED, Reason.NO_REPLICA),
}


def _standing(failed: int, judged: int) -> Standing:
    if failed == 0:
        return Standing.AGREES
    return Standing.DEVIATES if failed * 2 > judged else Standing.UNCLEAR


def _excess(judgement: Judgement) -> float:
    """How far past its limit a judgement is, as a factor."""
    if judgement.score is None or not judgement.threshold:
        return 0.0
    return abs(judgement.score) / judgement.threshold


def _broken() -> Judgement:
    details = {"broken": "not_a_number"}
    return Judgement(CheckLevel.L4, Outcome.FAILED, Reason.REPLICA_DISAGREES, details=details)


def _none_scored() -> Judgement:
    return Judgement(CheckLevel.L4, Outcome.SKIPPED, Reason.NOT_COMPARABLE)


def unknown() -> Weighed:
    """What is said where there are no references."""
    outcome, reason = CONCLUSIONS[Standing.UNKNOWN]
    details = {"measure": MEASURE}
    return Weighed(Standing.UNKNOWN, Judgement(CheckLevel.L4, outcome, reason, details=details))


def is_unusual(scored: Sequence[Figures | None], measure: str, normal: Normal | None) -> bool:
    """True when a round lies as far from normal as quiet damage does, though within the limits."""
    values = (getattr(one, measure) for one in scored if one is not None)
    known = [value for value in values if value is not None]
    if normal is None or not known:
        return False
    return median(map(normal.deviations, known)) > UNUSUAL


def to_json(references: References) -> dict[str, Any]:
    """A form that can be written down."""
    kept = [[list(one.prompt), list(one.answer), list(one.own)] for one in references.kept]
    return {"format": FORMAT, "model": references.model, "kept": kept}


def from_json(data: Mapping[str, Any] | None) -> References | None:
    """Read what `to_json` wrote; None where it is missing or something else, so taken anew."""
    try:
        if data is None or data["format"] != FORMAT:
            return None
        kept = [_reference(*one) for one in data["kept"][:MOST_KEPT]]
        return References(str(data["model"]), tuple(one for one in kept if one.is_usable))
    except (KeyError, TypeError, ValueError):
        return None


def _reference(prompt: Sequence[Any], answer: Sequence[Any], own: Sequence[Any]) -> Reference:
    return Reference(tuple(map(int, prompt)), tuple(map(int, answer)), tuple(map(float, own)))
