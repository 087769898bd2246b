"""Which answers are withheld."""

import pytest

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.shield import Severity, Shield, Withheld, least_bad, worst
from gatemesh_common.messages import CheckLevel, Outcome, Reason

SOFT = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.EMPTY)
HARD = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)


@pytest.mark.parametrize(
    ("severity", "failures", "withheld"),
    [("any", [SOFT], True), ("hard", [SOFT], False), ("hard", [SOFT, HARD], True), ("any", [], 0)],
)
def test_severity_decides(severity: Severity, failures: list[Judgement], withheld: object) -> None:
    """And an observer withholds nothing."""
    assert Shield("shield", severity).withholds(failures) == withheld
    assert Shield("rescue", severity).withholds(failures) == withheld
    assert not Shield("observe", severity).withholds(failures)


def test_the_proof_is_what_it_is_withheld_for() -> None:
    """Else the first failure."""
    assert worst([SOFT, HARD]) is HARD
    assert worst([SOFT, SOFT]) is SOFT


def test_the_first_answer_without_proof_passes_when_all_are_bad() -> None:
    """Proof everywhere lets none pass; a refusal has no answer to give."""
    proven = Withheld("a", hard=True, reason=Reason.NAN_LOGITS, body=b"{}")
    soft = Withheld("b", hard=False, reason=Reason.EMPTY, body=b"{}")
    assert least_bad([proven, soft]) is soft
    assert least_bad([proven]) is None
    assert least_bad([Withheld("c", hard=False, reason=Reason.EMPTY)]) is None
