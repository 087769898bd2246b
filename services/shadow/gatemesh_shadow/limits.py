"""What is normal between healthy instances of one model version, learnt and kept. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from gatemesh_common.messages import Decoding
from gatemesh_shadow.references import References
from gatemesh_shadow.references import from_json as references_from_json
from gatemesh_shadow.references import to_json as references_to_json
from gatemesh_shadow.scores import DEFAULT_LIMITS, Figures, ScoreLimits
from gatemesh_shadow.sequential import Normal

KEPT_FIGURES = 96
"""Of each way of decoding; then learning ends, so that a life which decays is not learnt."""

ENOUGH_FIGURES = 12
ENOUGH_COSINES = 12
ROBUST = 1.4826
"""Turns a median absolute deviation into a standard deviation."""
DEVIATIONS = 8.0
HEADROOM = 1.5
"""Above the worst that healthy instances showed."""
SANE_FACTOR = 2.0
"""Noise above so many times the default limit is no noise: one of the instances is not healthy."""
FLOORS: Mapping[str, float] = {
    "difference": 0.05,
    "distance": 0.06,
    "regret": 0.03,
    "worst_regret": 0.5,
    "nll": 1.0,
}
"""No limit is tighter: so much is rounding. Source: `facts/vllm.md` 10, first differences of greedy
answers at gaps up to 0.25."""
SPREAD_FLOORS: Mapping[str, float] = {
    "difference": 0.02,
    "distance": 0.01,
    "regret": 0.006,
    "worst_regret": 0.12,
}
TWO_SIDED = ("difference",)
WATCHED = {
    Decoding.GREEDY: ("distance", "difference", "regret", "worst_regret"),
    Decoding.SAMPLED: ("distance", "difference"),
}
"""What is added up over a life; regret of drawn tokens is chance."""
COSINE_MARGIN = 0.1
COSINE_SHARE = 0.02
"""Share of healthy pairs that may lie below the calibrated limit before its margin."""


@dataclass(slots=True)
class Learnt:
    """Figures of healthy answers for one way of decoding."""

    figures: list[Figures] = field(default_factory=list)
    cosines: list[float] = field(default_factory=list)

    def values(self, measure: str) -> list[float]:
        """All known values of one measure."""
        found = (getattr(one, measure) for one in self.figures)
        return [value for value in found if value is not None]


@dataclass(slots=True)
class VersionLimits:
    """All that is known about one model version of one pool."""

    learnt: dict[Decoding, Learnt] = field(
        default_factory=lambda: {one: Learnt() for one in (Decoding.GREEDY, Decoding.SAMPLED)}
    )
    measured_at: str | None = None
    """When the fixed prompts were last measured."""
    references: References | None = None
    """Answers kept from then; None where none were taken yet."""

    def learn(self, decoding: Decoding, figures: Figures) -> None:
        """Take in the figures of an answer of a healthy instance, until there are enough.

        Those of guessed ids are not taken: their worst tokens are missing.
        """
        known = self.learnt[key_of(decoding)].figures
        if len(known) < KEPT_FIGURES and not figures.guessed:
            known.append(figures)

    def learn_cosine(self, decoding: Decoding, cosine: float) -> None:
        """Take in the likeness of two healthy answers, until there are enough."""
        known = self.learnt[key_of(decoding)].cosines
        if len(known) < KEPT_FIGURES:
            known.append(cosine)

    def scores(self, decoding: Decoding) -> ScoreLimits:
        """The limits for one answer: calibrated ones as soon as there is enough."""
        key = key_of(decoding)
        default, learnt = DEFAULT_LIMITS[key], self.learnt[key]
        if len(learnt.figures) < ENOUGH_FIGURES:
            return default
        measured = {
            name: min(limit_of(learnt.values(name), FLOORS[name]), getattr(default, name))
            for name in FLOORS
            if len(learnt.values(name)) >= ENOUGH_FIGURES
        }
        return replace(default, **measured, source="calibrated")

    def normal(self, decoding: Decoding) -> dict[str, Normal]:
        """What is normal for each measure that is added up; empty until there is enough."""
        key = key_of(decoding)
        values = {name: self.learnt[key].values(name) for name in WATCHED[key]}
        return {
            name: normal_of(found, name)
            for name, found in values.items()
            if len(found) >= ENOUGH_FIGURES
        }

    def cosine(self, decoding: Decoding, default: float) -> tuple[float, str]:
        """The least cosine of healthy answers, and where it comes from; never above the default."""
        known = sorted(self.learnt[key_of(decoding)].cosines)
        if len(known) < ENOUGH_COSINES:
            return default, "default"
        low = known[int(len(known) * COSINE_SHARE)] - COSINE_MARGIN
        return min(default, low), "calibrated"


def key_of(decoding: Decoding) -> Decoding:
    """What is not known to be greedy is treated as drawn."""
    return Decoding.GREEDY if decoding is Decoding.GREEDY else Decoding.SAMPLED


def limit_of(values: Sequence[float], floor: float) -> float:
    """The limit that healthy values give: robust, above the worst of them, and not too tight."""
    sizes = [abs(value) for value in values]
    middle = median(sizes)
    spread = ROBUST * median(abs(size - middle) for size in sizes)
    return max(floor, middle + DEVIATIONS * spread, HEADROOM * max(sizes))


def normal_of(values: Sequence[float], measure: str) -> Normal:
    """Middle and spread of healthy values; a spread of nothing would make noise a drift."""
    middle = median(values)
    spread = ROBUST * median(abs(value - middle) for value in values)
    floor = SPREAD_FLOORS.get(measure, 0.1)
    return Normal(middle, max(spread, floor), two_sided=measure in TWO_SIDED)


def is_sane(figures: Iterable[Figures], decoding: Decoding) -> bool:
    """False when instances that pass for healthy disagree: their noise must not be learnt."""
    default = DEFAULT_LIMITS[key_of(decoding)]
    distances = [one.distance for one in figures if one.distance is not None]
    return not distances or median(distances) <= default.distance / SANE_FACTOR


def to_json(limits: Mapping[str, VersionLimits]) -> dict[str, Any]:
    """A form that can be written down."""
    return {name: _version_json(one) for name, one in limits.items()}


def _version_json(limits: VersionLimits) -> dict[str, Any]:
    learnt = {
        decoding.value: {
            "figures": [[one.tokens, *_measures(one)] for one in known.figures],
            "cosines": list(known.cosines),
        }
        for decoding, known in limits.learnt.items()
    }
    kept = (
        {} if limits.references is None else {"references": references_to_json(limits.references)}
    )
    return {"measured_at": limits.measured_at, "learnt": learnt, **kept}


def _measures(figures: Figures) -> list[float | None]:
    return [
        *(figures.nll, figures.difference, figures.distance),
        *(figures.regret, figures.worst_regret),
    ]


def from_json(data: Mapping[str, Any]) -> dict[str, VersionLimits]:
    """Read what `to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    return {name: _version_of(one) for name, one in data.items()}


def _version_of(data: Mapping[str, Any]) -> VersionLimits:
    limits = VersionLimits(measured_at=data["measured_at"])
    for name, known in data["learnt"].items():
        learnt = limits.learnt[Decoding(name)]
        learnt.figures.extend(Figures(int(tokens), *rest) for tokens, *rest in known["figures"])
        learnt.cosines.extend(map(float, known["cosines"]))
    limits.references = references_from_json(data.get("references"))
    return limits
