"""How many captures may be taken, so that a storm of failures floods nobody. Pure."""

from collections import OrderedDict
from random import Random
from typing import Literal

from gatemesh_common.captures import CaptureTerms
from gatemesh_common.messages import Verdict
from gatemesh_common.rates import Bucket

MOST_KINDS = 1000
"""Instances and reasons that are remembered; of others the first failure is new again."""

Refusal = Literal["share", "rate"]


class CaptureLimits:
    """Lets a share of the failures through: a few a minute of each kind, and so many in all."""

    def __init__(self, terms: CaptureTerms, rng: Random) -> None:
        self._share = terms.share
        self._rng = rng
        self._per_kind = terms.per_reason_per_min
        self._all = Bucket.per_min(terms.per_min)
        self._kinds: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def refuse(self, verdict: Verdict, now_s: float) -> Refusal | None:
        """Return why a failure is not captured; None counts it and lets it through."""
        if self._share < 1.0 and self._rng.random() >= self._share:
            return "share"
        kind = self._kind(verdict)
        return None if kind.take(now_s) and self._all.take(now_s) else "rate"

    def _kind(self, verdict: Verdict) -> Bucket:
        name = (verdict.instance_id, verdict.reason)
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = Bucket.per_min(self._per_kind)
            if len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)
        self._kinds.move_to_end(name)
        return kind
