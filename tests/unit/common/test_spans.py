"""What is told, and that nothing is while traces are off."""

from datetime import UTC, datetime

from tests.spans import TRACE, Recorder

from gatemesh_common.messages import RoutingApplied, Verdict
from gatemesh_common.spans import NO_SPANS, told

NOW = datetime(2026, 5, 1, tzinfo=UTC)
VERDICT = Verdict(
    timestamp=NOW, instance_id="e", request_id="r", check_level="L3", traceparent=TRACE
)


def test_nothing_is_told_while_traces_are_off() -> None:
    """What is caused belongs to what the client sent, or to nothing."""
    assert not NO_SPANS.on
    assert NO_SPANS.begin("x", TRACE, {}).traceparent == TRACE
    assert NO_SPANS.begin("x", None, {}).traceparent is None
    assert NO_SPANS.past("x", TRACE, NOW, NOW, {}) == TRACE
    assert told(NO_SPANS, VERDICT) is VERDICT
    NO_SPANS.begin("x", None, {}).end(status=200)


def test_what_a_verdict_causes_goes_under_its_span() -> None:
    """The span names the instance and the reason, and no text of the answer."""
    recorder = Recorder()
    sent = told(recorder.spans("agent"), VERDICT)
    span = recorder.named("verdict L3 failed")
    assert sent.traceparent == f"00-{span.trace_id}-{span.span_id}-01"
    assert f"-{span.parent_id}-" in TRACE
    [ended] = recorder.ended
    attributes = dict(ended.attributes or {})
    assert attributes["gatemesh.instance_id"] == "e"
    assert attributes["gatemesh.request_id"] == "r"
    assert set(attributes) == {
        f"gatemesh.{name}"
        for name in ("instance_id", "request_id", "check_level", "outcome", "reason", "hard")
    }


def test_other_messages_have_no_span() -> None:
    """They say nothing about a request."""
    recorder = Recorder()
    message = RoutingApplied(timestamp=NOW, agent_id="a", pool="p", version=1)
    assert told(recorder.spans("agent"), message) is message
    assert recorder.told == []
