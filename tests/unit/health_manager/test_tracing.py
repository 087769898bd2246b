"""The trace of a request goes through the decision, and the manager tells its own part of it."""

from dataclasses import replace
from datetime import timedelta

from tests.spans import TRACE, Recorder

from gatemesh_common.spans import NO_SPANS
from gatemesh_common.trace import derived, usable
from gatemesh_health_manager.announce import announcements
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.inputs import fleet_body, read_fleet
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision
from gatemesh_health_manager.replaying import untraced
from gatemesh_health_manager.tracing import tell_spans

from .samples import NOW, at, hard, incident, record


def fleet() -> Fleet:
    """Return a pool of two."""
    names = ("engine-0", "engine-1")
    return Fleet(Policy(), [PoolRecord("default")], [record(instance_id=name) for name in names])


def decided(traceparent: str | None) -> tuple[Fleet, Decision]:
    """Return what a hard proof does."""
    pool = fleet()
    verdict = hard().model_copy(update={"traceparent": traceparent})
    return pool, pool.apply("engine-0", verdict, NOW)


def test_incident_and_command_belong_to_the_trace_of_the_verdict() -> None:
    """So do the events that tell of them."""
    pool, decision = decided(TRACE)
    assert [one.traceparent for one in decision.incidents] == [TRACE]
    assert [order.command.traceparent for order in decision.commands] == [TRACE]
    told = [message for message, _ in announcements(pool, [decision], "v", NOW)]
    traced = {type(one).__name__ for one in told if one.traceparent == TRACE}
    assert traced == {"EjectInstance", "StateChanged", "IncidentChanged"}


def test_an_incident_without_a_request_has_a_trace_of_its_own() -> None:
    """The same in a replay: it is made of the incident's id."""
    for sent in (None, "nonsense"):
        _, decision = decided(sent)
        [opened] = decision.incidents
        assert opened.traceparent == derived("incident", opened.incident_id)
        assert usable(opened.traceparent)


def test_an_incident_that_goes_on_keeps_its_trace() -> None:
    """Later proofs are told in their own."""
    pool, first = decided(TRACE)
    other = derived("another request")
    again = hard().model_copy(update={"message_id": "m-2", "traceparent": other})
    pool.apply("engine-0", again, at(1))
    kept = pool.records["engine-0"].incident
    assert kept is not None
    assert kept.traceparent == first.incidents[0].traceparent == TRACE


def test_the_trace_is_kept_with_the_fleet() -> None:
    """Records of releases before have none."""
    pool, _ = decided(TRACE)
    body = fleet_body(pool)
    kept = read_fleet(body, Policy()).records["engine-0"].incident
    assert kept is not None
    assert kept.traceparent == TRACE
    [_, old] = sorted(body["instances"], key=lambda one: one["incident"] is not None)
    del old["incident"]["traceparent"]
    before = read_fleet(body, Policy()).records["engine-0"].incident
    assert before is not None
    assert before.traceparent is None


def test_a_replay_does_not_compare_traces() -> None:
    """History of releases before has none, and nothing was decided by them."""
    traced = record(incident=incident(traceparent=TRACE))
    assert untraced(traced) == record(incident=incident())
    assert untraced(record()) == record()


def test_a_decision_is_told_with_what_follows_from_it() -> None:
    """Under the verdict, from the locks to the commit."""
    recorder = Recorder()
    _, decision = decided(TRACE)
    tell_spans(recorder.spans("manager"), [decision], NOW, at(0.25))
    span = recorder.named("decide eject")
    assert (span.trace_id, span.parent_id) == (TRACE[3:35], TRACE[36:52])
    [ended] = recorder.ended
    assert (ended.end_time or 0) - (ended.start_time or 0) == 250_000_000
    assert dict(ended.attributes or {})["gatemesh.instance_id"] == "engine-0"


def test_an_incident_is_told_when_it_ends() -> None:
    """By its whole time."""
    recorder = Recorder()
    ended = incident(traceparent=TRACE, status="resolved", ended_at=at(61))
    decision = Decision(record=record(), incidents=(ended,))
    tell_spans(recorder.spans("manager"), [decision], at(61), at(61))
    assert [one.name for one in recorder.told] == ["decide A resolved", "incident A"]
    assert {one.trace_id for one in recorder.told} == {TRACE[3:35]}
    whole = recorder.ended[1]
    took = timedelta(microseconds=((whole.end_time or 0) - (whole.start_time or 0)) / 1000)
    assert took == timedelta(seconds=61)


def test_nothing_is_told_of_what_has_no_effect_or_while_traces_are_off() -> None:
    """Most decisions change a score and no more."""
    recorder = Recorder()
    _, decision = decided(TRACE)
    tell_spans(recorder.spans("manager"), [Decision(record=record())], NOW, NOW)
    tell_spans(NO_SPANS, [replace(decision)], NOW, NOW)
    assert recorder.told == []
