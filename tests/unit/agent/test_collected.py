"""What is collected is kept and goes nowhere."""

from gatemesh_agent.collected import Collected, note_judged
from gatemesh_agent.gates.judgement import passed, skipped
from gatemesh_common.messages import CheckLevel, Reason

from .test_judging import NAN


def test_failures_are_kept() -> None:
    """Of probes and second opinions."""
    collected = Collected()
    for judgement in (NAN, passed(CheckLevel.L1)):
        collected.conclude(0, judgement, {})
    collected.skip(CheckLevel.L2, "no_logprobs")
    assert (collected.failures, collected.judged) == ([NAN], {CheckLevel.L1, CheckLevel.L3})


def test_a_skip_is_no_judgement() -> None:
    """It clears nobody."""
    judged: set[CheckLevel] = set()
    note_judged(judged, skipped(CheckLevel.L2, Reason.NO_LOGPROBS))
    assert judged == set()
