"""How far rescue may go in one pool."""

from dataclasses import dataclass, field

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.rescue.hold import HoldBounds
from gatemesh_agent.shield import Severity


@dataclass(frozen=True, slots=True)
class RescueTerms:
    """What a pool allows."""

    severity: Severity = "any"
    hold: HoldBounds = field(default_factory=HoldBounds)
    continuations: int = 2
    """Of one answer."""
    per_minute: int = 600
    """Of all answers."""
    tenant_share: float = 0.5
    """Of these, for one tenant."""
    stall_s: float = 10.0
    """Longest time without a token, once there was one."""
    first_s: float = 60.0
    """Longest time to the first token of a continuation."""
    idle_s: float = 120.0
    """Longest time without a byte, whether or not somebody else can go on."""
    total_s: float = 3600.0
    """Longest time for one answer, whoever writes it."""
    takes_media: bool = False
    """True where prompts with pictures or sound may go on elsewhere."""

    def acts_on(self, failure: Judgement) -> bool:
        """Return True for a failure after which a stream does not go on."""
        return failure.hard or self.severity == "any"
