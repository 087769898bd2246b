"""By what gate L2 measures one answer."""

from dataclasses import dataclass

from gatemesh_agent.gates.drift import Drift, WitnessDrift
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, Metric, PoolBaseline
from gatemesh_common.messages import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Measured:
    """The baseline of an answer, and whose drift the answer becomes part of."""

    baseline: PoolBaseline = NO_BASELINE
    drift: Drift | None = None
    fingerprint: str | None = None


UNMEASURED = Measured()


def lean_of(verdict: Verdict) -> WitnessDrift | None:
    """Return what measures a second answer; None where the first did not drift."""
    if verdict.reason is not Reason.DRIFT:
        return None
    return WitnessDrift(Metric(verdict.details["metric"]))
