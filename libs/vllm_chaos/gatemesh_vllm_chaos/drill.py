"""What a drill file says, and whether it concerns this life of the engine."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """How the logits of a step are spoiled."""

    NAN = "nan"
    FLAT = "flat"
    SHIFT = "shift"
    STUCK = "stuck"


@dataclass(frozen=True)
class Drill:
    """One ordered fault, meant for one life of one engine."""

    fault: Fault
    pgid: int
    """Process group of the engine it is meant for; a restarted engine has another."""
    probability: float = 1.0
    """Share of requests that are spoiled; drawn once per request."""
    after_tokens: int = 0
    """Tokens of an answer that stay good before the fault sets in."""
    shift_by: int = 1
    """Token ids by which `shift` moves every logit."""
    token_id: int = 1000
    """The token that `stuck` always makes the likeliest."""

    def concerns(self, pgid: int) -> bool:
        """True for the one life this drill was written for."""
        return self.pgid == pgid


@dataclass(frozen=True)
class _Rule:
    kind: type | tuple[type, ...]
    low: float = 0
    high: float = 2**31

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, self.kind):
            return False
        return isinstance(value, int | float) and self.low <= value <= self.high


_OPTIONAL = {
    "probability": _Rule((int, float), high=1),
    "after_tokens": _Rule(int),
    "shift_by": _Rule(int, low=-(2**31)),
    "token_id": _Rule(int),
}
_PGID = _Rule(int, low=2)


def parse_drill(content: bytes) -> Drill | None:
    """The drill in this file content; None for anything half-written, unknown or out of bounds."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return _drill_of(raw) if isinstance(raw, dict) else None


def _drill_of(raw: dict[str, Any]) -> Drill | None:
    pgid: Any = raw.get("pgid", raw.get("pid"))
    if raw.get("fault") not in list(Fault) or not _PGID.accepts(pgid):
        return None
    options = {name: raw[name] for name in _OPTIONAL if name in raw}
    if not all(_OPTIONAL[name].accepts(value) for name, value in options.items()):
        return None
    return Drill(fault=Fault(raw["fault"]), pgid=pgid, **options)
