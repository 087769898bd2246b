"""The verifier's baseline."""

import pytest

from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason
from gatemesh_shadow.plausibility import ENOUGH, VerifierBaseline, baseline_of

GREEDY = Decoding.GREEDY


def warmed(nll_nats: float = 3.0) -> VerifierBaseline:
    """A baseline that has seen enough."""
    baseline = VerifierBaseline()
    for step in range(ENOUGH):
        baseline.learn(GREEDY, "en", nll_nats + 0.05 * (step % 5))
    return baseline


def test_it_warms() -> None:
    """Skipped, not passed, until it knows; also in another language or way of decoding."""
    baseline = warmed()
    for decoding, language in ((GREEDY, "zh"), (Decoding.SAMPLED, "en")):
        judgement = baseline.judge(decoding, language, 3.0, 64)
        assert (judgement.outcome, judgement.reason) == (Outcome.SKIPPED, Reason.WARMING)


@pytest.mark.parametrize(
    ("nll_nats", "outcome", "reason"),
    [
        (3.1, Outcome.PASSED, Reason.CLEAN),
        (4.55, Outcome.PASSED, Reason.CLEAN),
        (4.65, Outcome.FAILED, Reason.VERIFIER_SPIKE),
        (1.65, Outcome.PASSED, Reason.CLEAN),
        (1.55, Outcome.FAILED, Reason.VERIFIER_COLLAPSE),
    ],
)
def test_both_sides(nll_nats: float, outcome: Outcome, reason: Reason) -> None:
    """Salad is too hard to foretell, a loop too easy."""
    judgement = warmed().judge(GREEDY, "en", nll_nats, 64)
    assert (judgement.gate, judgement.outcome, judgement.reason) == (
        CheckLevel.L2,
        outcome,
        reason,
    )


def test_short_texts_say_little() -> None:
    """At the limit and below it."""
    assert warmed().judge(GREEDY, "en", 9.0, 15).reason is Reason.TOO_SHORT
    assert warmed().judge(GREEDY, "en", 9.0, 16).reason is Reason.VERIFIER_SPIKE


def test_it_can_be_written_down() -> None:
    """And read again."""
    baseline = warmed()
    assert baseline_of(baseline.to_json()).known == baseline.known
