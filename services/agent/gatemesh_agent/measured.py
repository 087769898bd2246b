"""By what gate L2 measures one answer."""

from dataclasses import dataclass

from gatemesh_agent.gates.drift import Drift, WitnessDrift
from gatemesh_agent.gates.yardstick import NO_YARDSTICK, Metric, Yardstick
from gatemesh_common.messages import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Measured:
    """The yardstick of an answer, and whose drift the answer becomes part of."""

    yardstick: Yardstick = NO_YARDSTICK
    drift: Drift | None = None
    fingerprint: str | None = None


UNMEASURED = Measured()


def lean_of(verdict: Verdict) -> WitnessDrift | None:
    """Return what to look for in a second answer; None where the first did not drift."""
    if verdict.reason is not Reason.DRIFT:
        return None
    return WitnessDrift(Metric(verdict.details["metric"]), int(verdict.details["direction"]))
