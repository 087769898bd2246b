"""Statements that run with every batch read by index, and only the days that they need."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from gatemesh_common.database import open_database, transaction
from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.batch import Counting
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.store_days import DayStore
from gatemesh_health_manager.store_verdicts import COPIES, WINDOW, copies_matter_from, window_query

from .conftest import verdict
from .desk import Desk

pytestmark = pytest.mark.integration

DAYS = 6
FILL = """
    INSERT INTO verdicts (message_id, instance_id, pool, incarnation, request_id, check_level,
        outcome, reason, hard, type, choice, prompt_key, decoding, details, "timestamp",
        counted_at, received_at)
    SELECT 'm' || g, 'engine-0', 'default', 1, 'r' || g, 'L1', 'failed', 'repetition', false, 'v',
        0, 'p' || g % 97, 'sampled', '{}', at, at, at
    FROM (SELECT g, CAST(:now AS timestamptz) - make_interval(secs => g * 20) AS at
        FROM generate_series(1, :count) AS g) AS made"""


def scans(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return how each table of a plan is read."""
    if "Relation Name" in plan:
        yield plan["Relation Name"], plan["Node Type"]
    for inner in plan.get("Plans", ()):
        yield from scans(inner)


def window_of(now: datetime) -> dict[str, Any]:
    """Return the parameters of a window around a failure of this moment."""
    record = InstanceRecord("engine-0", "default", InstanceState.HEALTHY, now, now, incarnation=1)
    fleet = Fleet(Policy(), [PoolRecord("default")], [record])
    counting = Counting(Policy().defaults.condition_a, [verdict("engine-0", timestamp=now)])
    return dict(window_query(counting, fleet, now))


def copies_of(now: datetime) -> dict[str, Any]:
    """Return the parameters of a look for copies of a failure of this moment."""
    fleet = Fleet(Policy(), [PoolRecord("default")], [])
    return {
        "since": copies_matter_from(fleet, [verdict("engine-0", timestamp=now)], now),
        "names": ["engine-0"],
        "lives": [1],
        "prompts": ["p1"],
        "levels": ["L1"],
        "hards": [False],
    }


async def test_they_look_at_no_day_but_the_last_and_at_no_whole_table(desk: Desk) -> None:
    """Whatever is stored before: cost does not grow with history."""
    engine = open_database(desk.url)
    desk.clock.now = desk.clock.now.replace(hour=20)
    now = desk.clock.now
    for ago in range(DAYS, -1, -1):
        desk.clock.now = now - timedelta(days=ago)
        await DayStore(engine, desk.clock).prepare()
    async with transaction(engine) as connection:
        await connection.execute(text(FILL), {"now": now, "count": DAYS * 86_400 // 20})
        await connection.execute(text("ANALYZE verdicts"))
        for statement, known in ((WINDOW, window_of(now)), (COPIES, copies_of(now))):
            explain = text(f"EXPLAIN (FORMAT JSON) {statement.text}")
            found = (await connection.execute(explain, known)).scalar_one()
            [plan] = json.loads(found) if isinstance(found, str) else found
            read = [one for one in scans(plan["Plan"]) if one[0].startswith("verdicts")]
            days = {name for name, _ in read}
            assert f"verdicts_{now:%Y%m%d}" in days
            assert f"verdicts_{now - timedelta(days=1):%Y%m%d}" not in days
            ways = {way for name, way in read if name == f"verdicts_{now:%Y%m%d}"}
            assert ways <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
    await engine.dispose()
