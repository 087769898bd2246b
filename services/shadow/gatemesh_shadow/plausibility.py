"""Judges answers by the verifier's figures against what is normal for their language. Pure."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason
from gatemesh_shadow.limits import ROBUST, key_of

GATE_VERSION = "1"
LEAST_TOKENS = 16
"""Of shorter texts the perplexity says little."""
ENOUGH = 24
KEPT = 256
DEVIATIONS = 6.0
LEAST_SPREAD_NATS = 0.25
LEAST_DISTANCE_NATS = 1.1
"""ln 3: a spike is at least three times the normal perplexity, a collapse at most a third."""


@dataclass(slots=True)
class VerifierBaseline:
    """Figures of answers of healthy instances, per decoding and language."""

    known: dict[str, deque[float]] = field(default_factory=dict)

    def learn(self, decoding: Decoding, language: str, nll_nats: float) -> None:
        """Take in an answer of a healthy instance."""
        key = _key(decoding, language)
        self.known.setdefault(key, deque(maxlen=KEPT)).append(nll_nats)

    def judge(self, decoding: Decoding, language: str, nll_nats: float, tokens: int) -> Judgement:
        """Judge one answer; two-sided, since a loop is too easy to foretell."""
        details: dict[str, Any] = {
            "measure": "verifier",
            "language": language,
            "tokens": tokens,
            "nll_nats": round(nll_nats, 4),
        }
        if tokens < LEAST_TOKENS:
            return _judgement(Outcome.SKIPPED, Reason.TOO_SHORT, None, None, details)
        values = self.known.get(_key(decoding, language), ())
        details["learnt"] = len(values)
        if len(values) < ENOUGH:
            return _judgement(Outcome.SKIPPED, Reason.WARMING, None, None, details)
        middle = median(values)
        spread = max(ROBUST * median(abs(one - middle) for one in values), LEAST_SPREAD_NATS)
        reach = max(DEVIATIONS * spread, LEAST_DISTANCE_NATS)
        details["normal_nats"] = round(middle, 4)
        if nll_nats > middle + reach:
            limit = middle + reach
            return _judgement(Outcome.FAILED, Reason.VERIFIER_SPIKE, nll_nats, limit, details)
        if nll_nats < middle - reach:
            limit = middle - reach
            return _judgement(Outcome.FAILED, Reason.VERIFIER_COLLAPSE, nll_nats, limit, details)
        return _judgement(Outcome.PASSED, Reason.CLEAN, nll_nats, middle + reach, details)

    def to_json(self) -> dict[str, list[float]]:
        """A form that can be written down."""
        return {key: list(values) for key, values in self.known.items()}


def baseline_of(data: Mapping[str, list[float]]) -> VerifierBaseline:
    """Read what `VerifierBaseline.to_json` wrote."""
    return VerifierBaseline({key: deque(map(float, one), maxlen=KEPT) for key, one in data.items()})


def _key(decoding: Decoding, language: str) -> str:
    return f"{key_of(decoding)}:{language}"


def _judgement(
    outcome: Outcome,
    reason: Reason,
    score: float | None,
    limit: float | None,
    details: Mapping[str, Any],
) -> Judgement:
    return Judgement(
        CheckLevel.L2,
        outcome,
        reason,
        score=score,
        threshold=limit,
        gate_version=GATE_VERSION,
        details=details,
    )
