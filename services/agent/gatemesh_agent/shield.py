"""Shield mode: which bad answers are kept from clients, and what those get instead. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_common.messages import Reason

Guarding = Literal["observe", "shield", "rescue"]
Severity = Literal["any", "hard"]


@dataclass(frozen=True, slots=True)
class Withheld:
    """A whole answer that its client did not get; `body` None where there was none to give."""

    instance_id: str
    hard: bool
    reason: Reason
    status: int = 0
    http_reason: str | None = None
    headers: Mapping[str, str] | None = None
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Shield:
    """Whether and against what clients are shielded."""

    guarding: Guarding = "observe"
    severity: Severity = "any"

    @property
    def is_up(self) -> bool:
        """True when bad answers are withheld."""
        return self.guarding != "observe"

    def withholds(self, failures: Sequence[Judgement]) -> bool:
        """Return True when an answer with these failures is not for its client."""
        if not self.is_up:
            return False
        return any(each.hard or self.severity == "any" for each in failures)


def worst(failures: Sequence[Judgement]) -> Judgement:
    """Return the failure that an answer is withheld for: a proof, else the first."""
    return next((each for each in failures if each.hard), failures[0])


def least_bad(withheld: Sequence[Withheld]) -> Withheld | None:
    """Return the answer that passes when every instance's was bad; None when all are proven bad.

    Soft evidence against every instance speaks for the request: its first answer passes.
    """
    return next((each for each in withheld if not each.hard and each.body is not None), None)
