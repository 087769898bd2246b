"""A capture and its verdict agree, whoever takes it."""

from gatemesh_common.capture_fields import fields_of
from gatemesh_common.captures import Capture
from gatemesh_common.messages import CheckLevel, Decoding, Reason, Span, Verdict

from .test_captures import NOON

OWN = {"message_id", "pool"}
"""Of the capture itself: another message, whose pool is the taker's."""


def test_all_that_both_have_is_the_verdict_s() -> None:
    """And nothing of it is forgotten when a message gets a field."""
    verdict = Verdict(
        timestamp=NOON,
        traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01",
        instance_id="engine-0",
        incarnation=3,
        model_version="m-1",
        request_id="r-1",
        choice=1,
        check_level=CheckLevel.L3,
        reason=Reason.NAN_LOGITS,
        hard=True,
        score=11.0,
        threshold=10.0,
        span=Span(token_start=4, token_end=9),
        gate_version="2",
        decoding=Decoding.GREEDY,
    )
    capture = Capture(**fields_of(verdict), pool="chat", agent_id="agent-0")
    shared = set(Verdict.model_fields) & set(Capture.model_fields) - OWN
    told, kept = verdict.model_dump(include=shared), capture.model_dump(include=shared)
    assert told == kept
    assert capture.verdict_id == verdict.message_id
    assert {name for name in shared if told[name] is None} == set()
