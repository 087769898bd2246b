"""The decision: a pure function of record, facts, event, pool, policy and time."""

from datetime import datetime

from gatemesh_common.messages import CommandReport, InstanceObserved, Verdict
from gatemesh_common.trace import usable
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.facts import Facts
from gatemesh_health_manager.observing import settle
from gatemesh_health_manager.on_observation import on_observation
from gatemesh_health_manager.on_report import on_report
from gatemesh_health_manager.on_request import on_request
from gatemesh_health_manager.on_tick import on_tick
from gatemesh_health_manager.on_verdict import on_verdict
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.record import Decision, InstanceRecord, PoolFacts, Tick

Event = Verdict | CommandReport | InstanceObserved | Asked | Tick


def assess(
    record: InstanceRecord,
    facts: Facts,
    event: Event,
    pool: PoolFacts,
    *,
    policy: PoolPolicy,
    now: datetime,
) -> Decision:
    """Return everything that one event changes about one instance."""
    trace = None if isinstance(event, Tick) else usable(event.traceparent)
    case = Case(record, pool, policy, now, event.message_id, traceparent=trace)
    settle(case)
    match event:
        case Verdict():
            on_verdict(case, event, facts)
        case CommandReport():
            on_report(case, event)
        case InstanceObserved():
            on_observation(case, event)
        case Asked():
            on_request(case, event)
        case Tick():
            on_tick(case, event.requests, event.measures)
    settle(case)
    return case.decision()
