"""What a capture may hold, and what agents do that were told nothing."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from gatemesh_common.captures import MOST_STEPS, Capture, CaptureStep, CaptureTerms
from gatemesh_common.messages import CheckLevel, Reason

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def capture(**more: object) -> Capture:
    """Return a capture with what every one has."""
    fields: dict[str, object] = {
        "timestamp": NOON,
        "instance_id": "engine-0",
        "pool": "chat",
        "agent_id": "a",
        "request_id": "r",
        "verdict_id": "v",
        "check_level": CheckLevel.L3,
        "reason": Reason.NAN_LOGITS,
    }
    return Capture.model_validate(fields | more)


def test_a_capture_goes_where_its_instance_is_followed() -> None:
    """A consumer may follow one pool or one instance."""
    assert capture().key() == "capture.v1.chat.engine-0"
    assert CaptureTerms(timestamp=NOON, pool="chat").key() == "capture_terms.v1.chat"


def test_without_terms_no_text_leaves() -> None:
    """The default is the careful one."""
    terms = CaptureTerms(timestamp=NOON, pool="chat")
    assert (terms.text, capture().text_policy, capture().texts) == ("none", "none", None)


def test_a_window_is_bounded_and_holds_numbers_only() -> None:
    """One bad publisher must not fill the table."""
    steps = tuple(CaptureStep(n=n) for n in range(MOST_STEPS + 1))
    with pytest.raises(ValidationError, match="steps"):
        capture(steps=steps)
    with pytest.raises(ValidationError, match="logprob"):
        CaptureStep(n=0, logprob=float("nan"))
