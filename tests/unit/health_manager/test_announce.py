"""What a decision tells the world."""

from gatemesh_common.messages import (
    DrainInstance,
    EjectInstance,
    FleetBrakeChanged,
    IncidentChanged,
    RoutingTable,
    StateChanged,
)
from gatemesh_health_manager.announce import announcements
from gatemesh_health_manager.facts import Facts
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy, parse_policy

from .samples import NOW, asked, at, hard, record, seen, verdict


def fleet() -> Fleet:
    """Return a pool with room for one to go."""
    records = [record(instance_id=name) for name in ("a", "b")]
    return Fleet(Policy(), [PoolRecord("default", routing_version=4)], records)


def test_the_table_goes_first() -> None:
    """It is what keeps clients safe; then the command, then the news."""
    pool = fleet()
    decision = pool.apply("a", hard(instance_id="a"), NOW)
    messages = [message for message, _ in announcements(pool, [decision], "p1", NOW)]
    assert [type(m) for m in messages] == [
        RoutingTable,
        EjectInstance,
        StateChanged,
        IncidentChanged,
    ]
    table = messages[0]
    assert isinstance(table, RoutingTable)
    assert (table.version, [row.in_rotation for row in table.instances]) == (5, [False, True])


def test_one_table_for_many_decisions() -> None:
    """The last version says everything; a drain names one no later than it."""
    pool = fleet()
    decisions = [
        pool.apply("a", verdict(instance_id="a"), NOW, Facts(6, 6)),
        pool.apply("b", verdict(instance_id="b"), NOW, Facts(6, 6)),
    ]
    messages = [message for message, _ in announcements(pool, decisions, "p1", NOW)]
    [table] = [m for m in messages if isinstance(m, RoutingTable)]
    [drain] = [m for m in messages if isinstance(m, DrainInstance)]
    assert 4 < drain.routing_version <= table.version


def test_nothing_to_tell() -> None:
    """A repetition is not news."""
    pool = fleet()
    decision = pool.apply("a", seen(instance_id="a"), NOW)
    assert announcements(pool, [decision], "p1", NOW) == []


def test_what_would_be_done_is_told() -> None:
    """Who is notified of incidents learns that nothing was done."""
    pool = fleet()
    pool.policy = parse_policy('[defaults]\nmode = "observe"\n')
    decision = pool.apply("a", hard(instance_id="a"), NOW)
    *_, event = [message for message, _ in announcements(pool, [decision], "p1", NOW)]
    assert isinstance(event, IncidentChanged)
    assert (event.status, event.would) == ("held", "eject, confirm, restart")


def test_a_brake_that_falls_is_told_once() -> None:
    """Who is notified learns that nothing is done any more until a person resets it."""
    names = ("a", "b", "c")
    pool = Fleet(Policy(), [PoolRecord("default")], [record(instance_id=name) for name in names])
    decisions = [pool.apply(name, hard(instance_id=name), NOW) for name in names]
    events = [
        message
        for message, _ in announcements(pool, decisions, "p1", NOW)
        if isinstance(message, FleetBrakeChanged)
    ]
    assert [(event.pool, event.status) for event in events] == [("default", "fell")]
    assert events[0].reason == pool.pools["default"].brake_reason != ""
    assert events[0].key() == "brake.v1.default"


def test_a_brake_that_is_reset_is_told_with_who_did_it() -> None:
    """It is no secret who let the mesh act again."""
    braked = PoolRecord("default", braked_at=NOW, brake_reason="2 of 3")
    pool = Fleet(Policy(), [braked], [record(instance_id="a")])
    reset = asked("reset_brake", instance_id=None, backlog="skip", requested_by="ann")
    pool.answer(reset, at(1))
    [event] = [message for message, _ in announcements(pool, [], "p1", at(1))]
    assert isinstance(event, FleetBrakeChanged)
    assert (event.status, event.reason) == ("reset", "skip by ann")
