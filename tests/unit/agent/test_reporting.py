"""Failures are published, everything is counted."""

from datetime import UTC, datetime

import pytest
from tests.spans import TRACE, Recorder

from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.gates.judgement import Judgement, passed
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.telemetry import Telemetry
from gatemesh_common.messages import (
    CheckLevel,
    Decoding,
    InstanceState,
    Message,
    Outcome,
    Reason,
    RequestRejected,
    RoutedInstance,
    Verdict,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORIGIN = Origin("R1", TRACE, "tenant", "print", Decoding.GREEDY)
LIFE = Life("engine-0", 3, "m-1", numbered=True)
FAILED = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.EMPTY, score=0.0, threshold=1.0)


@pytest.fixture
def published() -> list[Message]:
    """Return where messages go."""
    return []


@pytest.fixture
def telemetry() -> Telemetry:
    """Return fresh telemetry."""
    return Telemetry("agent-0", "p", NOON)


@pytest.fixture
def reporter(published: list[Message], telemetry: Telemetry) -> Reporter:
    """Return a reporter."""
    return Reporter("agent-0", "p", telemetry, published.append, lambda: NOON)


def conclude(reporter: Reporter, life: Life = LIFE, choice: int = 0) -> None:
    """Count a failure and have it published."""
    reporter.count(FAILED, life)
    reporter.publish(reporter.verdict(FAILED, choice, ORIGIN, life, {"tokens": 5}))


def test_a_failure_is_published_with_all_that_is_known(
    reporter: Reporter, published: list[Message]
) -> None:
    """Nothing of the text."""
    conclude(reporter, choice=2)
    [verdict] = published
    assert isinstance(verdict, Verdict)
    assert verdict.key() == "verdict.v1.l1.p.engine-0"
    assert (verdict.incarnation, verdict.model_version, verdict.choice) == (3, "m-1", 2)
    assert (verdict.request_id, verdict.traceparent) == ("R1", TRACE)
    assert (verdict.tenant, verdict.prompt_fingerprint) == ("tenant", "print")
    assert verdict.details == {"agent_id": "agent-0", "tokens": 5}


def test_what_is_told_of_one_request_belongs_together(
    reporter: Reporter, published: list[Message]
) -> None:
    """A client that sends no trace context has one made of the request's id, when it is needed."""
    origin = Origin("R1")
    reporter.publish(reporter.verdict(FAILED, 0, origin, LIFE, {}))
    reporter.reject_all(origin)
    [verdict, rejected] = published
    assert verdict.traceparent == rejected.traceparent == origin.trace
    assert Origin("R2").trace != origin.trace


def test_a_verdict_has_a_span_when_traces_are_on(
    published: list[Message], telemetry: Telemetry
) -> None:
    """What follows from it goes under that."""
    recorder = Recorder()
    spans = recorder.spans("agent")
    reporter = Reporter("agent-0", "p", telemetry, published.append, lambda: NOON, spans=spans)
    conclude(reporter)
    [verdict] = published
    span = recorder.named("verdict L1 failed")
    assert verdict.traceparent == f"00-{span.trace_id}-{span.span_id}-01"
    assert span.parent_id == TRACE[36:52]


def test_a_pass_is_only_counted(
    reporter: Reporter, published: list[Message], telemetry: Telemetry
) -> None:
    """Skips have their reason."""
    reporter.count(passed(CheckLevel.L1), LIFE)
    reporter.skip(CheckLevel.L3, "too_large", LIFE)
    [window] = telemetry.roll(NOON, {})
    assert published == []
    assert window.gates[CheckLevel.L1].passed == 1
    assert window.gates[CheckLevel.L3].skipped == {"too_large": 1}


def test_two_equal_failures_are_two_messages(reporter: Reporter, published: list[Message]) -> None:
    """The inbox would drop a repeated id."""
    for _ in range(2):
        conclude(reporter)
    assert len({each.message_id for each in published}) == 2


def test_a_life_that_nobody_numbered_is_the_present_one(
    reporter: Reporter, published: list[Message]
) -> None:
    """An agent that never heard the manager cannot know better."""
    instance = RoutedInstance(
        instance_id="e", base_url="http://e", state=InstanceState.HEALTHY, incarnation=0
    )
    conclude(reporter, Life.of(instance, 0))
    conclude(reporter, Life.of(instance, 1))
    first, second = published
    assert isinstance(first, Verdict)
    assert isinstance(second, Verdict)
    assert (first.incarnation, second.incarnation) == (None, 0)
    assert first.model_version is None


def test_rejections_say_who_answered(reporter: Reporter, published: list[Message]) -> None:
    """Or that nobody did."""
    reporter.reject(InstanceFailedError("draining", "is being stopped"), ORIGIN, LIFE, "engine-1")
    reporter.reject_all(ORIGIN)
    first, second = published
    assert isinstance(first, RequestRejected)
    assert isinstance(second, RequestRejected)
    assert (first.cause, first.rerouted_to, first.incarnation) == ("draining", "engine-1", 3)
    assert (second.cause, second.rerouted_to) == ("no_instance", None)
