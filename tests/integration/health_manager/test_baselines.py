"""Sketches in, a baseline out: on a real broker and database, with managers as processes."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gatemesh_common.database import open_database
from gatemesh_common.messages import EVENTS, Baseline, Decoding, Sketch, TelemetryWindow
from gatemesh_health_manager.policy import BaselinePolicy, Policy, PoolPolicy
from gatemesh_health_manager.store_baselines import BaselineStore

from .conftest import DEADLINE_S, Site, failures

pytestmark = pytest.mark.integration

RULES = """
[defaults.baseline]
min_samples = 50
settle_s = {settle_s}
"""
WAITING = "SELECT count(*) FROM telemetry_windows WHERE sketches IS NOT NULL"


def window(name: str, place: int, count: int = 60, **fields: object) -> TelemetryWindow:
    """Return what an agent saw just now: so many answers of one figure."""
    now = datetime.now(UTC)
    sketch = Sketch(
        metric="nll_whole",
        decoding=Decoding.GREEDY,
        script="latin",
        width=0.02,
        bins={place: count},
    )
    known = {
        "timestamp": now,
        "instance_id": name,
        "pool": "default",
        "agent_id": "agent-0",
        "incarnation": 1,
        "window_start": now,
        "window_end": now,
        "sketches": (sketch,),
    }
    return TelemetryWindow.model_validate(known | fields)


async def next_baseline(site: Site, wanted: Callable[[Baseline], bool]) -> Baseline:
    """Return the next baseline of that kind that is broadcast."""
    channel = await site.publisher.channel()
    queue = await channel.declare_queue(exclusive=True, auto_delete=True)
    await queue.bind(EVENTS, "baseline.v1.default")
    async with asyncio.timeout(DEADLINE_S), queue.iterator(no_ack=True) as messages:
        async for message in messages:
            baseline = Baseline.model_validate_json(message.body)
            if wanted(baseline):
                return baseline
    raise AssertionError("unreachable")


def settings(folder: Path, settle_s: float) -> dict[str, str]:
    """Return settings of a manager that settles soon."""
    path = folder / "policy.toml"
    path.write_text(RULES.format(settle_s=settle_s))
    return {
        "GATEMESH_HEALTH_MANAGER_POLICY_FILE": str(path),
        "GATEMESH_HEALTH_MANAGER_BASELINE_S": "0.2",
    }


async def test_sketches_become_a_baseline_that_outlives_the_manager(
    site: Site, tmp_path: Path
) -> None:
    """It is repeated with the same version after a restart, and rises with what is new."""
    rules = settings(tmp_path, 0.05)
    manager = await site.start_ready(**rules)
    await site.bring_up("engine-0", "engine-1")
    empty = await next_baseline(site, lambda _: True)
    assert empty.entries == ()
    await site.publisher.publish(window("engine-0", 25))
    learnt = await next_baseline(site, lambda found: bool(found.entries))
    assert learnt.version > empty.version
    assert {entry.script for entry in learnt.entries} == {"any", "latin"}
    assert learnt.entries[0].count == 60
    assert learnt.entries[0].median == pytest.approx(0.51, abs=0.02)
    manager.kill()
    manager.wait(30)
    await site.start_ready(**rules)
    assert (await next_baseline(site, lambda _: True)).entries == learnt.entries
    await site.publisher.publish(window("engine-1", 35, 30))
    risen = await next_baseline(site, lambda found: found.version > learnt.version)
    assert risen.entries[0].count == 90
    assert site.rows("SELECT DISTINCT answers FROM baselines_v1") == [(90,)]


async def test_a_suspect_instance_adds_nothing(site: Site, tmp_path: Path) -> None:
    """What it showed shortly before it was found out is dropped with the rest."""
    await site.start_ready(**settings(tmp_path, 3.0))
    await site.bring_up("engine-0", "engine-1")
    await site.publisher.publish(window("engine-0", 25))
    await site.publisher.publish(window("engine-1", 150))
    await site.until_value(WAITING, 2)
    for failure in failures("engine-1", 6):
        await site.publisher.publish(failure)
    await site.until_state("engine-1", "draining")
    await site.publisher.publish(window("engine-1", 150))
    learnt = await next_baseline(site, lambda found: bool(found.entries))
    await site.until_value(WAITING, 0)
    assert learnt.entries[0].median == pytest.approx(0.51, abs=0.02)
    assert site.rows("SELECT DISTINCT instance_id FROM baseline_sketches") == [("engine-0",)]


async def test_windows_wait_and_are_taken_in_once(site: Site) -> None:
    """Two managers at once share the work; what is too young stays."""
    await site.start_ready()
    await site.bring_up("engine-0")
    for minutes in (0, 0, 30):
        late = datetime.now(UTC) + timedelta(minutes=minutes)
        await site.publisher.publish(window("engine-0", 25, 40, window_end=late))
    await site.until_value(WAITING, 3)
    engine = open_database(site.database_url)
    policy = Policy(defaults=PoolPolicy(baseline=BaselinePolicy(settle_s=1)))

    def clock(ahead: timedelta = timedelta(seconds=5)) -> datetime:
        return datetime.now(UTC) + ahead

    stores = [BaselineStore(engine, policy, clock) for _ in range(2)]
    try:
        await asyncio.gather(*(store.settle() for store in stores))
        await stores[0].settle()
        assert site.value(WAITING) == 1
        assert site.rows("SELECT count, bins FROM baseline_sketches") == [(80.0, {"25": 80.0})]
        await BaselineStore(engine, policy, lambda: clock(timedelta(days=31))).forget()
        assert site.value("SELECT count(*) FROM baseline_sketches") == 0
        assert site.value("SELECT count(*) FROM baselines") == 1
    finally:
        await engine.dispose()
