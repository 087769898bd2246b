"""Judgements say what they rest on."""

from gatemesh_agent.gates.judgement import GATE_VERSION, Finding, passed, skipped, text_failure
from gatemesh_common.messages import CheckLevel, Outcome, Reason


def test_a_text_failure_is_soft_and_placed() -> None:
    """Text is evidence for condition A, never proof for condition B."""
    judgement = text_failure(Finding(Reason.REPETITION, 400.0, 320.0, 17, 417))
    assert judgement.gate is CheckLevel.L1
    assert judgement.outcome is Outcome.FAILED
    assert not judgement.hard
    assert judgement.span is not None
    assert (judgement.span.char_start, judgement.span.char_end) == (17, 417)
    assert judgement.gate_version == GATE_VERSION


def test_a_pass_and_a_skip_differ() -> None:
    """What could not be judged is never a pass."""
    assert passed(CheckLevel.L1).outcome is Outcome.PASSED
    skip = skipped(CheckLevel.L3, Reason.NO_LOGPROBS)
    assert (skip.outcome, skip.reason) == (Outcome.SKIPPED, Reason.NO_LOGPROBS)
    assert skipped(CheckLevel.L3, Reason.NO_LOGPROBS) is skip
    assert skipped(CheckLevel.L2, Reason.NO_LOGPROBS).gate is CheckLevel.L2
