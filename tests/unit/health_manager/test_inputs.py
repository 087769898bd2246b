"""What is kept of decisions comes back as it was."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gatemesh_common.messages import Action, InstanceState, ProbeTicket
from gatemesh_health_manager import inputs
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.inputs import (
    Input,
    InputKind,
    fleet_body,
    is_decided,
    is_due,
    is_weighty,
    message_body,
    read_fleet,
    see,
    seen_body,
    tick_one,
    ticks_body,
)
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import PoolFacts
from gatemesh_health_manager.states import IllegalTransitionError, Trigger
from gatemesh_health_manager.streaks import Streak, Streaks

from .samples import NOW, POLICY, asked, at, incident, record, report, seen

RICH = record(
    incident=incident(),
    streaks=Streaks(Streak(NOW, ((at(1), "p"),))),
    ticket=ProbeTicket(ticket_id="t", purpose="routine"),
    restarts=(NOW, at(1)),
    penalty=0.1 + 0.2,
)


def test_a_fleet_comes_back_as_it_was() -> None:
    """Through JSON, floats and moments to the last digit."""
    pool = Fleet(Policy(), [PoolRecord("default", 7, paused=True)], [RICH])
    again = read_fleet(json.loads(json.dumps(fleet_body(pool))), Policy())
    assert again.records == pool.records
    assert again.pools == pool.pools


def test_messages_come_back_as_they_were() -> None:
    """Each kind knows its class."""
    for kind, message in (
        (InputKind.REPORT, report(Action.RESTART)),
        (InputKind.OBSERVATION, seen()),
        (InputKind.REQUEST, asked("pause", instance_id=None)),
    ):
        body = json.loads(json.dumps(message_body(message)))
        assert Input(NOW, kind, "v", ("default",), body, {}).event == message


def test_weight_and_a_look_decide_nothing() -> None:
    """They follow the clock; a row for each would drown what was decided."""
    assert not is_decided(RICH, replace(RICH, weight=0.3, observed_at=at(9)))
    assert is_decided(RICH, replace(RICH, due_at=NOW))


def test_ticks_keep_the_order_of_deciding() -> None:
    """Who comes first gets the room; JSON objects would come back in another order."""
    names = ("engine-10", "engine-2", "engine-1")
    before = {name: record(instance_id=name) for name in names}
    pool = Fleet(Policy(), [PoolRecord("default")], before.values())
    assert ticks_body(before, pool, {}) == {}
    for name in names[:2]:
        pool.put(replace(pool.records[name], due_at=NOW))
    body = ticks_body(before, pool, {"engine-2": 7})
    assert body == {"requests": [["engine-10", 0], ["engine-2", 7]]}


def test_a_decision_that_moves_nobody_needs_no_looks() -> None:
    """When the executor last looked matters for brakes and repeated commands alone."""
    case = Case(record(), PoolFacts(4, 4), POLICY, NOW, "e-1")
    assert not is_weighty(case.decision())
    case.refusal = "no room"
    assert is_weighty(case.decision())


def test_looks_come_back() -> None:
    """Of those instances that a fleet knows."""
    pool = Fleet(Policy(), [PoolRecord("default")], [record(observed_at=at(5))])
    later = Fleet(Policy(), [PoolRecord("default")], [record()])
    see(later, {**seen_body(pool), "gone": NOW.isoformat()})
    assert later.records["engine-0"].observed_at == at(5)


def test_ticks_have_the_same_id_again() -> None:
    """Ids of what they order derive from it."""
    pools = [Fleet(Policy(), [PoolRecord("default")], [record(due_at=NOW)]) for _ in range(2)]
    first, second = (tick_one(pool, "engine-0", 0, at(1)) for pool in pools)
    assert first == second
    assert first.commands


def test_a_pool_in_which_nothing_is_due_is_told() -> None:
    """A deadline, a probe that is due, or a fault in the rules has it ticked in earnest."""

    def due(**about: Any) -> bool:
        known = record(pool="a", **{"observed_at": NOW, "probed_at": NOW, **about})
        others = record(instance_id="engine-1", pool="b", due_at=at(-9))
        pool = Fleet(Policy(), [PoolRecord("a"), PoolRecord("b")], [known, others])
        return is_due(pool, "a", {}, at(1))

    assert not due()
    assert due(due_at=NOW)
    assert due(probed_at=at(-999))


def test_a_fault_in_the_rules_is_for_the_tick_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells of it; a look must not hide it."""

    def fail(*_: object) -> None:
        raise IllegalTransitionError(InstanceState.HEALTHY, Trigger.STARTED)

    monkeypatch.setattr(inputs, "tick_one", fail)
    pool = Fleet(Policy(), [PoolRecord("default")], [record()])
    assert is_due(pool, "default", {}, NOW)
