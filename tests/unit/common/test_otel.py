"""Spans through OpenTelemetry: the right trace, parent, moments and share."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.spans import TRACE, Recorder

from gatemesh_common.otel import exporting

NOW = datetime(2026, 5, 1, tzinfo=UTC)
UNSAMPLED = TRACE[:-2] + "00"


def test_a_span_goes_under_its_parent() -> None:
    """And what it causes goes under it."""
    recorder = Recorder()
    spans = recorder.spans("agent")
    outer = spans.begin("request", TRACE, {"gatemesh.request_id": "r"})
    spans.begin("inner", outer.traceparent, {}).end()
    outer.end(status=200)
    inner, request = recorder.named("inner"), recorder.named("request")
    assert (request.trace_id, request.parent_id) == (TRACE[3:35], TRACE[36:52])
    assert (inner.trace_id, inner.parent_id) == (request.trace_id, request.span_id)
    attributes = dict(recorder.ended[-1].attributes or {})
    assert attributes == {"gatemesh.request_id": "r", "gatemesh.status": 200}
    assert recorder.ended[0].resource.attributes["service.name"] == "agent"


def test_a_span_that_is_over_has_its_moments() -> None:
    """One whose end is before its beginning takes no time."""
    recorder = Recorder()
    spans = recorder.spans("executor")
    spans.past("step", None, NOW, NOW + timedelta(seconds=3), {})
    spans.past("odd", None, NOW, NOW - timedelta(seconds=3), {})
    step, odd = recorder.ended
    assert step.start_time == NOW.timestamp() * 1_000_000_000
    assert (step.end_time or 0) - (step.start_time or 0) == 3_000_000_000
    assert odd.end_time == odd.start_time


def test_a_context_that_is_none_begins_a_trace() -> None:
    """Nobody is refused for it."""
    recorder = Recorder()
    spans = recorder.spans("manager")
    assert spans.begin("x", "nonsense", {}).traceparent != "nonsense"
    spans.past("x", "nonsense", NOW, NOW, {})
    assert recorder.told[0].parent_id is None


def test_the_client_decides_about_its_own_trace() -> None:
    """Of the rest a share is told; what is not told is handed on as not told."""
    recorder = Recorder()
    none, all_ = recorder.spans("agent", 0.0), recorder.spans("agent", 1.0)
    none.begin("a", TRACE, {}).end()
    all_.begin("b", UNSAMPLED, {}).end()
    none.begin("c", None, {}).end()
    all_.begin("d", None, {}).end()
    assert [one.name for one in recorder.told] == ["a", "d"]
    left_out = none.begin("e", None, {}).traceparent
    assert left_out is not None
    assert int(left_out[-2:], 16) & 1 == 0


def test_effects_of_what_is_not_told_stay_under_its_parent() -> None:
    """Else they would lie under a span that nobody has."""
    recorder = Recorder()
    assert recorder.spans("agent", 1.0).past("verdict", UNSAMPLED, NOW, NOW, {}) == UNSAMPLED
    # A manager keeps every span: incidents are rare.
    assert recorder.spans("manager").past("decide", UNSAMPLED, NOW, NOW, {}) != UNSAMPLED
    assert [one.name for one in recorder.told] == ["decide"]


def test_a_collector_that_is_away_ends_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Its spans are lost, and the block goes on and ends."""
    with exporting("agent", "http://127.0.0.1:1/v1/traces", None) as spans:
        spans.begin("x", None, {}).end()
    assert not [one for one in caplog.records if one.levelname == "CRITICAL"]
