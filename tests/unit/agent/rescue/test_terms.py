"""What a pool allows."""

import pytest

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.rescue.terms import RescueTerms
from gatemesh_common.messages import CheckLevel, Outcome, Reason


@pytest.mark.parametrize("hard", [True, False])
def test_severity_says_what_ends_a_stream(hard: bool) -> None:  # noqa: FBT001
    """Proof always does."""
    failure = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.REPETITION, hard=hard)
    assert RescueTerms().acts_on(failure)
    assert RescueTerms(severity="hard").acts_on(failure) == hard
