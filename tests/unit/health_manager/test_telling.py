"""What operators see of decisions besides SQL."""

import logging
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.record import Tick
from gatemesh_health_manager.telling import (
    tell_brakes,
    tell_decisions,
    tell_fleet,
    tell_no_fleet,
    tell_policy,
    tell_policy_fault,
    tell_tick,
    tell_verdicts,
)

from .samples import NOW, hard, record, verdict


def value(name: str, **labels: str) -> float:
    """Return the value of a metric, zero when it is not there yet."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


def fleet() -> Fleet:
    """Return a pool of two."""
    names = ("engine-0", "engine-1")
    return Fleet(Policy(), [PoolRecord("default")], [record(instance_id=name) for name in names])


def test_a_decision_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """One event per fact, with the identifiers that join services."""
    caplog.set_level(logging.INFO)
    before = value("gatemesh_transitions_total", pool="default", trigger="proven")
    tell_decisions([fleet().apply("engine-0", hard(), NOW)])
    after = value("gatemesh_transitions_total", pool="default", trigger="proven")
    assert after - before == 1
    events = [entry.getMessage() for entry in caplog.records]
    assert events == ["instance_moved", "incident_changed", "command_ordered"]
    assert all(entry.__dict__["instance_id"] == "engine-0" for entry in caplog.records)
    assert all(entry.__dict__["incident_id"] for entry in caplog.records)


def test_verdicts_are_counted_by_gate() -> None:
    """A gate that falls silent is seen."""
    labels = {"check_level": "L1", "outcome": "failed"}
    before = value("gatemesh_verdicts_total", **labels)
    tell_verdicts([verdict(), verdict(), hard()], NOW)
    assert value("gatemesh_verdicts_total", **labels) - before == 2


def test_the_way_of_a_verdict_into_the_database_is_timed() -> None:
    """From the moment that it names; one of a clock that runs ahead counts as no time."""
    before = value("gatemesh_verdict_delay_seconds_sum")
    tell_verdicts([verdict()], verdict().timestamp + timedelta(seconds=7))
    tell_verdicts([verdict()], verdict().timestamp - timedelta(seconds=7))
    assert value("gatemesh_verdict_delay_seconds_sum") - before == pytest.approx(7)


def test_states_are_a_gauge() -> None:
    """A state that nobody is in stands at zero, not at its last value."""
    pool = fleet()
    tell_fleet(pool)
    assert value("gatemesh_instances", pool="default", state="healthy") == 2
    assert value("gatemesh_rotation_share", pool="default") == 1
    pool.apply("engine-0", hard(), NOW)
    tell_fleet(pool)
    assert value("gatemesh_instances", pool="default", state="healthy") == 1
    assert value("gatemesh_instances", pool="default", state="ejected") == 1
    assert value("gatemesh_rotation_share", pool="default") == 0.5
    assert value("gatemesh_incidents_open", pool="default", status="open") == 1
    assert value("gatemesh_incidents_open", pool="default", status="held") == 0


def test_how_commands_end_is_counted() -> None:
    """One that nobody reports on ends, too."""
    before = value("gatemesh_commands_ended_total", pool="default", outcome="expired")
    pool = fleet()
    pool.apply("engine-0", hard(), NOW)
    tell_decisions([pool.apply("engine-0", Tick("t"), NOW + timedelta(hours=1))])
    assert value("gatemesh_commands_ended_total", pool="default", outcome="expired") == before + 1


def test_a_tick_is_timed() -> None:
    """Deadlines that are looked at late act late."""
    before = value("gatemesh_tick_seconds_sum")
    tell_tick(0.25)
    assert value("gatemesh_tick_seconds_sum") - before == pytest.approx(0.25)


def test_a_fleet_brake_is_told_once_and_shown(caplog: pytest.LogCaptureFixture) -> None:
    """One alert when it falls, one line when a person resets it; the leader's metric shows it."""
    caplog.set_level(logging.INFO)
    braked = fleet()
    fallen = PoolRecord("default", braked_at=NOW, brake_reason="3 of 4")
    braked.pools["default"] = fallen
    tell_brakes(braked)
    tell_brakes(Fleet(Policy(), [fallen], []))
    [told] = [each for each in caplog.records if each.msg == "fleet_brake_fell"]
    assert (told.levelno, vars(told)["reason"]) == (logging.ERROR, "3 of 4")
    reset = Fleet(Policy(), [fallen], [])
    reset.pools["default"] = PoolRecord("default", brake_reset_at=NOW, brake_reset="skip by ann")
    tell_brakes(reset)
    [told] = [each for each in caplog.records if each.msg == "fleet_brake_reset"]
    assert vars(told)["by"] == "skip by ann"
    tell_fleet(Fleet(Policy(), [fallen], []))
    assert value("gatemesh_fleet_brake", pool="default") == 1
    tell_fleet(reset)
    assert value("gatemesh_fleet_brake", pool="default") == 0


def test_who_leads_no_more_shows_no_fleet() -> None:
    """Else an alert on what it saw last would never end."""
    tell_fleet(Fleet(Policy(), [PoolRecord("default", braked_at=NOW)], []))
    assert value("gatemesh_ticker_leads") == 1
    tell_no_fleet()
    assert value("gatemesh_ticker_leads") == 0
    for name, labels in (
        ("gatemesh_fleet_brake", {"pool": "default"}),
        ("gatemesh_instances", {"pool": "default", "state": "healthy"}),
    ):
        assert REGISTRY.get_sample_value(name, labels) is None


def test_only_the_rules_in_force_are_shown() -> None:
    """One version at a time, and whether the file is at fault."""
    tell_policy("one")
    tell_policy("two")
    shown = REGISTRY.get_sample_value
    assert shown("gatemesh_policy_info", {"version": "one"}) is None
    assert shown("gatemesh_policy_info", {"version": "two"}) == 1
    tell_policy_fault("line 3")
    assert value("gatemesh_policy_invalid") == 1
    tell_policy_fault(None)
    assert value("gatemesh_policy_invalid") == 0


def test_observe_mode_is_shown() -> None:
    """Nobody takes the silence of an observed pool for health."""
    observe = parse_policy('[defaults]\nmode = "observe"\n')
    pool = Fleet(observe, [PoolRecord("default")], [record()])
    tell_fleet(pool)
    assert value("gatemesh_observe_mode", pool="default") == 1
    labels = {"pool": "default", "condition": "B"}
    before = value("gatemesh_observed_incidents_total", **labels)
    tell_decisions([pool.apply("engine-0", hard(), NOW)])
    assert value("gatemesh_observed_incidents_total", **labels) == before
    pool.policy = Policy()
    tell_decisions([pool.apply("engine-0", Tick("t"), NOW)])
    assert value("gatemesh_observed_incidents_total", **labels) - before == 1
    tell_fleet(pool)
    assert value("gatemesh_observe_mode", pool="default") == 0
