"""What the doctor finds: how grave it is, and its cure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gatemesh_ctl.errors import CtlError


class Level(StrEnum):
    """How grave a finding is."""

    OK = "ok"
    UNKNOWN = "unknown"
    """It could not be looked at from here; never shown as well."""
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    level: Level
    what: str
    cure: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers behind the words."""

    def as_row(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "check": self.check,
            "level": self.level,
            "what": self.what,
            "cure": self.cure,
            **({"facts": dict(self.facts)} if self.facts else {}),
        }


def well(check: str, what: str, **facts: Any) -> Finding:
    """Return that something is as it should be."""
    return Finding(check, Level.OK, what, facts=facts)


def unknown(check: str, what: str, cure: str, **facts: Any) -> Finding:
    """Return that something could not be looked at, and what would let it."""
    return Finding(check, Level.UNKNOWN, what, cure, facts)


def warning(check: str, what: str, cure: str, **facts: Any) -> Finding:
    """Return that something wants a person's eye."""
    return Finding(check, Level.WARNING, what, cure, facts)


def fault(check: str, what: str, cure: str, **facts: Any) -> Finding:
    """Return that something does not work."""
    return Finding(check, Level.FAULT, what, cure, facts)


def fault_of(check: str, error: CtlError) -> Finding:
    """Return an error of ours as a finding."""
    return fault(check, error.wrong, error.way_out)


def gravest(findings: Iterable[Finding]) -> Level:
    """Return how grave the gravest finding is."""
    order = list(Level)
    return max((one.level for one in findings), key=order.index, default=Level.OK)
