"""Conditions over telemetry between real tables: what is added up, what acts, what replays."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.history import assert_replay_agrees

from gatemesh_common.database import open_database
from gatemesh_common.messages import TelemetryWindow
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import parse_policy

from .desk import Desk

pytestmark = pytest.mark.integration

NAMES = ("engine-0", "engine-1", "engine-2")
RULES = parse_policy("""
[[defaults.own_conditions]]
name = "errors"
kind = "rate"
of = "server_errors"
more_than = 0.1
window_s = 60

[[defaults.own_conditions]]
name = "slow"
kind = "rate"
of = "tokens_per_s"
times_pool = 3

[[defaults.own_conditions]]
name = "late"
kind = "rate"
of = "first_token_p95"
times_pool = 3

[[defaults.own_conditions]]
name = "empty_answers"
kind = "slo_burn"
bad = ["failures"]
reasons = ["empty"]
burn_more_than = 9
playbook = "stop"
""")


@pytest.fixture
async def measuring(fresh_database: str) -> AsyncIterator[Desk]:
    """Give a store with rules over telemetry and three instances in rotation."""
    upgrade(fresh_database, find_migrations(None))
    engine = open_database(fresh_database)
    desk = Desk(fresh_database, engine, RULES)
    await desk.bring_up(*NAMES)
    yield desk
    assert_replay_agrees(fresh_database)
    await engine.dispose()


async def answer(desk: Desk, name: str, **counts: Any) -> None:
    """Hand in a window of ten seconds with 40 answers."""
    desk.clock.now += timedelta(seconds=10)
    known = {"requests": 40, "tokens": 4000, "in_flight": 2} | counts
    window = TelemetryWindow.model_validate(
        {
            "timestamp": desk.clock.now,
            "instance_id": name,
            "agent_id": "agent-0",
            "incarnation": 1,
            "window_start": desk.clock.now - timedelta(seconds=10),
            "window_end": desk.clock.now,
            **known,
        }
    )
    await desk.store.apply_records("telemetry", [window])


async def told(desk: Desk) -> list[tuple[str, str, str]]:
    """Return the incidents after a tick, eleven seconds later."""
    desk.clock.now += timedelta(seconds=11)
    await desk.store.tick()
    return desk.rows("SELECT instance_id, condition, cause FROM incidents_v1 ORDER BY opened_at")


async def test_a_share_of_server_errors_acts(measuring: Desk) -> None:
    """Client errors are no answers; a window that has passed counts no more."""
    await answer(measuring, "engine-1", server_errors=40)
    measuring.clock.now += timedelta(seconds=61)
    await answer(measuring, "engine-0", server_errors=4)
    assert await told(measuring) == []
    await answer(measuring, "engine-0", server_errors=4, client_errors=20)
    assert await told(measuring) == [("engine-0", "errors", "server_errors 0.133, 60 answers")]
    assert measuring.state("engine-0") == "draining"


async def test_a_slow_instance_is_measured_beside_the_others(measuring: Desk) -> None:
    """Tokens per second of one running request, a third of the median and less."""
    for name, tokens in zip(NAMES, (900, 3000, 2000), strict=True):
        await answer(measuring, name, tokens=tokens)
    assert await told(measuring) == []
    await answer(measuring, "engine-0", tokens=100)
    [(name, condition, cause)] = await told(measuring)
    assert (name, condition) == ("engine-0", "slow")
    assert cause == "tokens_per_s 25, others 125, 80 answers"


async def test_late_first_tokens_are_measured_beside_the_others(measuring: Desk) -> None:
    """The 95th percentile over several windows; whole answers do not count."""
    for name in NAMES:
        await answer(measuring, name, first_tokens={26: 19, 39: 1})
    assert await told(measuring) == []
    await answer(measuring, "engine-0", first_tokens={39: 1})
    [(name, condition, cause)] = await told(measuring)
    assert (name, condition) == ("engine-0", "late")
    assert cause == "first_token_p95 1.02, others 0.108, 21 answers"


async def test_a_budget_that_burns_in_both_windows_acts(measuring: Desk) -> None:
    """Failed answers by their reason; what is young is the slow window, too."""
    await answer(measuring, "engine-2")
    await measuring.judge("engine-2", 3, reason="empty")
    await measuring.judge("engine-2", 9, check_level="L3", reason="flat_distribution")
    assert await told(measuring) == []
    await measuring.judge("engine-2", 1, reason="empty")
    [(name, condition, cause)] = await told(measuring)
    assert (name, condition) == ("engine-2", "empty_answers")
    assert cause == "burn 10 in 300 s and 10 in 3600 s, objective 0.99"
