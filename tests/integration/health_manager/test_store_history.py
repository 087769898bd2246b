"""Windows as the database counts them, and history as a replay reads it, on a real database."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest
from tests.history import assert_replay_agrees

from gatemesh_common.database import open_database
from gatemesh_common.messages import (
    Verdict,
)
from gatemesh_health_manager import store_fleet, store_history, store_verdicts
from gatemesh_health_manager.facts import Failure, densest_window, prompt_key
from gatemesh_health_manager.history import HistoryError
from gatemesh_health_manager.known_records import KnownRecords
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.remembered import Failures
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_history import HistoryStore
from gatemesh_health_manager.store_rows import verdict_values

from .desk import NOW, Desk

pytestmark = pytest.mark.integration


async def test_a_window_in_sql_counts_like_the_pure_rule(desk: Desk) -> None:
    """Copies that are left out in reading change no count, whatever the rule's limits."""
    rules = "[defaults.condition_a]\nmore_than = 9999\nmax_per_prompt = {}\nwindow_s = 20\n"
    rng = random.Random(7)
    await desk.bring_up("engine-0", "engine-1")
    stored: list[Verdict] = []
    for per_prompt in (1, 2, 3):
        policy = parse_policy(rules.format(per_prompt))
        rule = policy.defaults.condition_a
        for _ in range(15):
            moments = [desk.clock() + timedelta(seconds=rng.uniform(0, 90)) for _ in range(12)]
            desk.clock.now = max([desk.clock.now, *moments])
            fresh = [
                Verdict(
                    message_id=f"m{rng.random()}",
                    timestamp=moment,
                    instance_id="engine-0",
                    request_id="r",
                    check_level="L1",
                    prompt_fingerprint=rng.choice("abcd"),
                )
                for moment in moments
            ]
            found = await counted_by_sql(desk, policy, fresh)
            stored += fresh
            failures = [Failure(v.timestamp, prompt_key(v), v in fresh) for v in stored]
            assert found == densest_window(failures, rule.window_s, per_prompt, rule.min_prompts)


async def test_windows_of_own_conditions_count_like_the_pure_rule(desk: Desk) -> None:
    """Gates, reasons, proof and tenants are picked by the database as in memory."""
    policy = parse_policy(
        """
        [[defaults.own_conditions]]
        name = "many"
        levels = ["L1", "LX"]
        window_s = 20
        more_than = 9999
        max_per_prompt = 2
        min_tenants = 2
        [[defaults.own_conditions]]
        name = "few"
        levels = ["LX"]
        reasons = ["empty"]
        hard = true
        window_s = 20
        more_than = 9999
        """
    )
    rng = random.Random(11)
    await desk.bring_up("engine-0", "engine-1")
    memory, fleet = Failures(), None
    for _ in range(15):
        moments = [desk.clock() + timedelta(seconds=rng.uniform(0, 60)) for _ in range(12)]
        desk.clock.now = max([desk.clock.now, *moments])
        fresh = [
            Verdict(
                message_id=f"m{rng.random()}",
                timestamp=moment,
                instance_id="engine-0",
                request_id="r",
                check_level=rng.choice(("L1", "LX")),
                reason=rng.choice(("empty", "reported")),
                hard=rng.random() < 0.5,
                tenant=rng.choice((None, "a", "b")),
                prompt_fingerprint=rng.choice("abcd"),
            )
            for moment in moments
        ]
        found = await counted_by_sql(desk, policy, fresh)
        if fleet is None:
            async with desk.store._deciding() as work:
                await work.load_all()
            fleet = work.fleet
        memory.note(fleet, fresh, desk.clock.now)
        assert memory.facts(policy, fleet, fresh, desk.clock.now)["engine-0"] == found
    assert {name for name, _ in found.own} == {"many", "few"}


async def test_ticks_are_replayed_in_their_order(desk: Desk) -> None:
    """Two shifts end with one tick and there is room for one: names of other lengths, too."""
    names = ("engine-2", "engine-10", "engine-1")
    await desk.bring_up(*names)
    for name in ("engine-2", "engine-10"):
        for n in range(3):
            await desk.judge(name, 1, check_level="L4", prompt_fingerprint=f"p{n}")
    desk.clock.now += timedelta(seconds=11)
    await desk.store.tick()
    states = sorted(desk.state(name) for name in names)
    assert states == ["draining", "healthy", "suspect"]


async def test_a_clock_that_was_set_hides_no_input(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided by a clock an hour ahead, and then by one an hour behind, is replayed."""
    monkeypatch.setattr(store_history, "CHUNK", 2)
    await desk.bring_up("engine-0")
    right = desk.clock.now
    for second, hours in enumerate((0, 0, 0, 1, 1, 1, -1, -1, -1, 0, 0, 0)):
        desk.clock.now = right + timedelta(hours=hours, seconds=second)
        await desk.judge("engine-0", 1, prompt_fingerprint=f"p{second}")
    desk.clock.now = right + timedelta(seconds=20)
    await desk.store.remember_fleet()
    assert_replay_agrees(desk.url)


async def test_a_fleet_kept_by_a_clock_set_back_is_no_beginning(desk: Desk) -> None:
    """What was decided before it would be missing from the replay."""
    await desk.bring_up("engine-0", "engine-1", "engine-2")
    right = desk.clock.now
    await desk.judge("engine-0", 8)
    desk.clock.now = right - timedelta(hours=1)
    await desk.store.remember_fleet()
    await desk.judge("engine-1", 8)
    desk.clock.now = right + timedelta(seconds=20)
    await desk.store.remember_fleet()
    assert_replay_agrees(desk.url)


async def test_history_is_forgotten_but_for_what_the_rest_begins_with(desk: Desk) -> None:
    """The last kept fleet before the cut stays, with what came after it."""
    await desk.bring_up("engine-0", "engine-1")
    desk.clock.now += timedelta(days=2)
    await desk.store.remember_fleet()
    desk.clock.now += timedelta(days=2)
    await desk.judge("engine-0", 6)
    desk.clock.now += timedelta(days=2)
    assert await desk.store.forget_history(timedelta(days=3)) > 0
    kinds = [kind for (kind,) in desk.rows("SELECT kind FROM decision_inputs ORDER BY id")]
    assert kinds == ["fleet", "verdicts"]
    assert await desk.store.forget_history(timedelta(days=3)) == 0


async def test_rules_of_another_release_are_named(desk: Desk) -> None:
    """A key that is gone ends no replay with a traceback, and none of a time without it."""
    await desk.bring_up("engine-0", "engine-1")
    desk.execute("UPDATE policy_versions SET body = body || '{\"gone\": 1}'")
    with HistoryStore(desk.url) as store, pytest.raises(HistoryError, match="gone"):
        store.read(NOW, NOW + timedelta(days=1))
    desk.execute("UPDATE policy_versions SET body = body - 'gone'")


async def counted_by_sql(desk: Desk, policy: Policy, fresh: list[Verdict]) -> Any:
    """Insert verdicts and return the facts that the database gives."""
    engine = open_database(desk.url)
    store = Store(engine, policy, desk.clock)
    async with store._deciding() as work:
        await work.load({"engine-0": None})
        connection, fleet, now = work._connection, work.fleet, work.now
        _, facts = await store_verdicts.look_back(connection, policy, fleet, fresh, now)
        rows = [verdict_values(each, fleet.records["engine-0"], now) for each in fresh]
        await store_verdicts.copy(connection, rows)
    await engine.dispose()
    return facts["engine-0"]


async def test_a_kept_fleet_has_the_pool_that_is_being_made(desk: Desk) -> None:
    """Else a manager's first look at an instance could fall between it and what is replayed."""
    await desk.store.register_policy()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    engine = open_database(desk.url)
    async with engine.begin() as connection:
        await store_fleet.lock_pools(connection, Policy(), KnownRecords(), {"fresh"})
        keeping = asyncio.create_task(desk.store.remember_fleet())
        async with asyncio.timeout(30):
            while desk.rows(waiting) == [(0,)]:  # noqa: ASYNC110 - another session's lock
                await asyncio.sleep(0.02)
        assert not keeping.done()
    await keeping
    await engine.dispose()
    (body,) = desk.rows("SELECT body FROM decision_inputs WHERE kind = 'fleet' ORDER BY id")[-1]
    assert [pool["pool"] for pool in body["pools"]] == ["fresh"]
