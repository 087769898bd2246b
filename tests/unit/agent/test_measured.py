"""What L2 looks for follows from what the instance is accused of."""

from datetime import UTC, datetime

from gatemesh_agent.gates.drift import WitnessDrift
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, Metric
from gatemesh_agent.measured import UNMEASURED, lean_of
from gatemesh_common.messages import CheckLevel, Reason, Verdict

VERDICT = Verdict(
    timestamp=datetime(2026, 1, 1, tzinfo=UTC),
    instance_id="e",
    request_id="r",
    check_level=CheckLevel.L2,
    reason=Reason.DRIFT,
    details={"metric": "entropy_16", "direction": -1},
)


def test_a_drift_is_looked_for_in_its_figure() -> None:
    """Nothing is measured where the answer itself shows what is wrong."""
    assert lean_of(VERDICT) == WitnessDrift(Metric.ENTROPY_16)
    assert lean_of(VERDICT.model_copy(update={"reason": Reason.PERPLEXITY_SPIKE})) is None


def test_what_is_not_measured_has_no_baseline() -> None:
    """So L2 skips it."""
    assert UNMEASURED.baseline is NO_BASELINE
    assert UNMEASURED.drift is None
