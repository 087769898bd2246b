"""Observe mode in the database: told, never acted on, switched over both ways, replayed alike."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.history import assert_replay_agrees

from gatemesh_common.database import open_database
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import Policy, parse_policy

from .desk import Desk

pytestmark = pytest.mark.integration

OBSERVE = parse_policy('[defaults]\nmode = "observe"\n')
SHOWN = "SELECT instance_id, state, in_rotation, weight, mode, would FROM instance_health_v1"
ALL_SERVE = [(True, 1.0), (True, 1.0), (True, 1.0)]
SERVING = "SELECT in_rotation, weight FROM instance_health_v1"


@pytest.fixture
async def observing(fresh_database: str) -> AsyncIterator[Desk]:
    """Give a store whose pools are only observed, three instances just seen."""
    upgrade(fresh_database, find_migrations(None))
    engine = open_database(fresh_database)
    desk = Desk(fresh_database, engine, OBSERVE)
    await desk.store.register_policy()
    for name in ("engine-0", "engine-1", "engine-2"):
        await desk.observe(name)
    yield desk
    assert_replay_agrees(fresh_database)
    await engine.dispose()


async def test_what_is_observed_is_told_and_no_backlog_for_acting(observing: Desk) -> None:
    """Views say what would be done; after the switch only fresh evidence acts."""
    await observing.judge("engine-0", 6)
    await observing.store.tick()
    assert observing.rows(SERVING) == ALL_SERVE
    assert observing.rows(f"{SHOWN} WHERE would <> ''") == [
        ("engine-0", "healthy", True, 1.0, "observe", "drain, restart")
    ]
    told = "SELECT condition, status, mode, would FROM incidents_v1"
    assert observing.rows(told) == [("A", "held", "observe", "drain, restart")]
    assert observing.rows("SELECT mode, held_incidents, observed_incidents FROM pools_v1") == [
        ("observe", 0, 1)
    ]
    [(detail,)] = observing.rows("SELECT detail FROM timeline_v1 WHERE kind = 'incident'")
    assert detail.endswith("(only observed, would: drain, restart)")
    await observing.store.use_policy(Policy())
    await observing.store.tick()
    assert observing.rows("SELECT count(*) FROM commands") == [(0,)]
    assert observing.rows("SELECT status, mode FROM incidents_v1") == [("expired", "observe")]
    observing.clock.now += timedelta(seconds=1)
    await observing.judge("engine-0", 6)
    assert observing.rows("SELECT action, instance_id FROM commands") == [("drain", "engine-0")]
    assert observing.rows("SELECT mode FROM pools_v1") == [("act",)]


async def test_a_switch_in_the_middle_of_an_ejection(observing: Desk) -> None:
    """What is out when observe mode begins serves again with the next tick."""
    await observing.store.use_policy(Policy())
    await observing.judge("engine-0", 1, check_level="L3", hard=True)
    assert observing.state("engine-0") == "ejected"
    await observing.store.use_policy(OBSERVE)
    await observing.store.tick()
    await observing.report("engine-0")
    assert observing.rows(SERVING) == ALL_SERVE
    assert observing.rows("SELECT action FROM commands ORDER BY fence") == [
        ("eject",),
        ("readmit",),
    ]
    steps = "SELECT trigger FROM transitions_v1 WHERE instance_id = 'engine-0' ORDER BY id"
    assert [trigger for (trigger,) in observing.rows(steps)] == [
        "observed",
        "let_through",
        "proven",
        "spared",
        "let_through",
    ]


async def test_an_exit_is_left_to_whoever_runs_the_process(observing: Desk) -> None:
    """Told with what would be done, and over when a new life is seen."""
    await observing.observe("engine-1", running=False)
    told = "SELECT condition, status, would FROM incidents_v1"
    assert observing.rows(told) == [("exit", "held", "restart")]
    assert observing.state("engine-1") == "starting"
    await observing.observe("engine-1", "life-2")
    assert observing.rows(told) == [("exit", "resolved", "restart")]
    assert observing.rows(SERVING) == ALL_SERVE
    assert observing.rows("SELECT count(*) FROM commands") == [(0,)]
