"""The one door: each kind of event finds its rule, and the same input gives the same decision."""

import pytest

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.assess import Event, assess
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.record import InstanceRecord, Tick

from .samples import (
    POLICY,
    ROOM,
    asked,
    at,
    flying,
    hard,
    incident,
    record,
    report,
    seen,
    verdict,
)

S = InstanceState
EVENTS: list[tuple[InstanceRecord, Event, Facts, S]] = [
    (record(), hard(), NO_FACTS, S.EJECTED),
    (record(), verdict(), Facts(6, 6), S.DRAINING),
    (flying(record(S.DRAINING), Action.DRAIN), report(Action.DRAIN), NO_FACTS, S.RESTARTING),
    (record(), seen(running=False), NO_FACTS, S.RESTARTING),
    (record(), asked("drain"), NO_FACTS, S.DRAINING),
    (record(S.DRAINING, incident=incident()), Tick("tick"), NO_FACTS, S.QUARANTINED),
]


@pytest.mark.parametrize(
    ("about", "event", "facts", "state"), EVENTS, ids=lambda it: type(it).__name__
)
def test_every_event_finds_its_rule(
    about: InstanceRecord, event: Event, facts: Facts, state: S
) -> None:
    """And deciding twice decides the same."""
    now = at(4000)
    first = assess(about, facts, event, ROOM, policy=POLICY, now=now)
    assert first.record.state is state
    assert assess(about, facts, event, ROOM, policy=POLICY, now=now) == first
