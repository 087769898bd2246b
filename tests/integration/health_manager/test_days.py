"""History in days on a real database: divided in place, made ahead, dropped, seen once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine, text
from tests.history import assert_replay_agrees

from gatemesh_common.database import open_database, transaction
from gatemesh_common.errors import DatabaseUnavailableError, LockHeldError
from gatemesh_common.messages import TelemetryWindow
from gatemesh_health_manager.days import DAYS_AHEAD
from gatemesh_health_manager.first_days import prepare_days
from gatemesh_health_manager.migrate import config_for, find_migrations, upgrade
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_days import DIVIDED, DayStore
from gatemesh_mesh.postgres import plain_url

from .conftest import Site
from .desk import Desk

pytestmark = pytest.mark.integration
FOLDER = find_migrations(None)
BEFORE = "0015"
DAY = timedelta(days=1)
FILLED = ("instances", "incidents", "commands", "transitions", "verdicts", "telemetry_windows")
WHERE = "SELECT tableoid::regclass::text, request_id FROM verdicts ORDER BY id"
PARTS = """
    SELECT c.relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    WHERE inhparent = 'verdicts'::regclass ORDER BY 1"""


@pytest.fixture
async def days(desk: Desk) -> AsyncIterator[DayStore]:
    """Give what makes and drops days by the clock of the desk."""
    engine = open_database(desk.url)
    yield DayStore(engine, desk.clock)
    await engine.dispose()


def parts(desk: Desk) -> list[str]:
    """Return the parts of the verdicts that are days."""
    return [name for (name,) in desk.rows(PARTS) if name != "verdicts_other"]


def window_of(desk: Desk) -> TelemetryWindow:
    """Return telemetry of this moment."""
    return TelemetryWindow(
        timestamp=desk.clock(),
        agent_id="a",
        instance_id="engine-0",
        incarnation=1,
        window_start=desk.clock(),
        window_end=desk.clock(),
    )


def downgrade(url: str, revision: str) -> None:
    """Take migrations back."""
    engine = create_engine(url)
    with engine.connect() as connection:
        config = config_for(FOLDER)
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
        connection.commit()
    engine.dispose()


async def test_a_table_in_use_is_divided_where_it_stands(desk: Desk) -> None:
    """Views show old and new rows, numbers go on, and whoever wrote to the table goes on."""
    desk.clock.now = datetime.now(UTC)
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 3)
    await desk.store.apply_records("telemetry", [window_of(desk)])
    downgrade(desk.url, BEFORE)
    ahead = "UPDATE verdicts SET received_at = now() + interval '3 days' WHERE request_id = 'r3'"
    desk.execute(ahead)
    old = desk.rows("SELECT id, request_id FROM verdicts_v1 ORDER BY id")
    with psycopg.connect(plain_url(desk.url)) as reader:
        reader.execute("SELECT 1")
        reader.commit()
        upgrade(desk.url, FOLDER)
        reader.execute("SET ROLE gatemesh_reader")
        assert reader.execute("SELECT count(*) FROM verdicts_v1").fetchall() == [(len(old),)]
    desk.execute(
        "UPDATE verdicts SET received_at = (SELECT max(received_at) FROM verdicts_before) "
        "WHERE request_id = 'r3'"
    )
    await desk.judge("engine-0", 2)
    await desk.store.apply_records("telemetry", [window_of(desk)])
    windows = "SELECT tableoid::regclass::text, count(*) FROM telemetry_windows GROUP BY 1"
    assert desk.rows(windows) == [("telemetry_windows_before", 2)]
    rows = desk.rows("SELECT id, request_id FROM verdicts_v1 ORDER BY id")
    assert rows[: len(old)] == old
    numbers = [number for number, _ in rows]
    assert numbers == sorted(set(numbers))
    assert len(rows) == len(old) + 2
    assert {table for table, _ in desk.rows(WHERE)} == {"verdicts_before"}
    desk.clock.now += DAY
    await desk.judge("engine-0", 1)
    assert desk.rows(WHERE)[-1][0] == f"verdicts_{desk.clock.now:%Y%m%d}"
    timeline = "SELECT count(*) FROM timeline_v1 WHERE kind = 'verdict'"
    assert desk.rows(timeline) == desk.rows("SELECT count(*) FROM verdicts")
    downgrade(desk.url, BEFORE)
    assert desk.rows("SELECT id, request_id FROM verdicts_v1 ORDER BY id")[: len(old)] == old
    upgrade(desk.url, FOLDER)
    await desk.judge("engine-0", 1)


async def test_a_database_in_use_goes_down_and_up_again(desk: Desk) -> None:
    """Every migration meets rows, as it does where people upgrade; nothing is lost."""
    desk.clock.now = datetime.now(UTC)
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 6)
    await desk.store.apply_records("telemetry", [window_of(desk)])
    before = {name: desk.rows(f"SELECT count(*) FROM {name}") for name in FILLED}  # noqa: S608
    assert [(0,)] not in before.values()
    downgrade(desk.url, "0001")
    upgrade(desk.url, FOLDER)
    assert {name: desk.rows(f"SELECT count(*) FROM {name}") for name in FILLED} == before  # noqa: S608
    assert len(await desk.judge("engine-1", 2)) == 2
    # The first release kept nothing to replay.
    desk.execute("DELETE FROM decision_inputs")


async def test_days_are_made_ahead_and_dropped_by_managers_side_by_side(
    desk: Desk, days: DayStore
) -> None:
    """Each is made once; a row that comes long after nobody made days is kept all the same."""
    await desk.bring_up("engine-0", "engine-1")
    desk.execute("DELETE FROM verdicts_other")
    desk.execute("DELETE FROM decision_inputs_other WHERE kind <> 'fleet'")
    made = await asyncio.gather(days.prepare(), days.prepare())
    assert sum(made) >= len(DIVIDED) * DAYS_AHEAD
    assert await days.prepare() == 0
    begun = f"verdicts_{desk.clock.now:%Y%m%d}"
    await desk.judge("engine-0", 1)
    assert desk.rows(WHERE)[-1][0] == begun
    desk.clock.now += (DAYS_AHEAD + 3) * DAY
    await desk.judge("engine-0", 1)
    assert desk.rows(WHERE)[-1][0] == "verdicts_other"
    # The day of the stray row stays with it; the days after get their own.
    await days.prepare()
    assert f"verdicts_{desk.clock.now:%Y%m%d}" not in parts(desk)
    desk.clock.now += DAY
    await desk.judge("engine-0", 1)
    assert desk.rows(WHERE)[-1][0] == f"verdicts_{desk.clock.now:%Y%m%d}"
    assert begun in parts(desk)
    assert await days.forget(DAY) > 0
    assert begun not in parts(desk)
    assert [table for table, _ in desk.rows(WHERE)] == [f"verdicts_{desk.clock.now:%Y%m%d}"]
    # What decisions were made of has been dropped by hand here: begin anew.
    desk.execute("DELETE FROM decision_inputs")


async def test_the_evidence_of_an_open_incident_outlives_its_day(
    desk: Desk, days: DayStore
) -> None:
    """It goes once the incident is over; incident and transitions stay."""
    desk.execute("DELETE FROM verdicts_other")
    await days.prepare()
    await desk.bring_up("engine-0", "engine-1")
    await desk.judge("engine-0", 6)
    seen = "SELECT count(*) FROM verdicts_v1 WHERE instance_id = 'engine-0' AND check_level = 'L1'"
    assert desk.rows("SELECT condition, status FROM incidents") == [("A", "open")]
    desk.clock.now += 100 * DAY
    await days.forget(30 * DAY)
    assert desk.rows(seen) == [(6,)]
    desk.execute(
        "UPDATE incidents SET status = 'resolved', ended_at = opened_at + interval '1 minute'"
    )
    steps = desk.rows("SELECT count(*) FROM transitions")
    await days.forget(30 * DAY)
    assert desk.rows(seen) == [(0,)]
    assert desk.rows("SELECT condition FROM incidents_v1") == [("A",)]
    assert desk.rows("SELECT count(*) FROM transitions_v1") == steps
    desk.execute("DELETE FROM decision_inputs")


async def test_a_message_of_yesterday_is_seen_once(desk: Desk, days: DayStore) -> None:
    """No key spans the days: the inbox is what tells copies."""
    await desk.bring_up("engine-0", "engine-1")
    desk.clock.now += 2 * DAY
    await days.prepare()
    [first] = await desk.judge("engine-0", 1)
    window = window_of(desk)
    await desk.store.apply_records("telemetry", [window])
    desk.clock.now += DAY
    await desk.store.apply_verdicts("verdicts", [first])
    await desk.store.apply_records("telemetry", [window])
    copies = f"SELECT count(*) FROM verdicts WHERE message_id = '{first.message_id}'"  # noqa: S608
    assert desk.rows(copies) == [(1,)]
    assert desk.rows("SELECT count(*) FROM telemetry_windows") == [(1,)]
    # Even without the inbox a window is one row: when it ended is its own word.
    desk.execute("DELETE FROM inbox")
    await desk.store.apply_records("telemetry", [window])
    assert desk.rows("SELECT count(*) FROM telemetry_windows") == [(1,)]


async def test_whoever_reads_long_holds_up_nobody(desk: Desk, days: DayStore) -> None:
    """A day that is being read is dropped in a later round, and verdicts go on."""
    desk.execute("DELETE FROM verdicts_other")
    await days.prepare()
    await desk.bring_up("engine-0", "engine-1")
    desk.clock.now += 10 * DAY
    with psycopg.connect(plain_url(desk.url)) as reader:
        reader.execute("SELECT count(*) FROM verdicts_v1")
        with pytest.raises(DatabaseUnavailableError):
            await days.forget(3 * DAY)
        await desk.judge("engine-0", 1)
    assert await days.forget(3 * DAY) > 0
    assert len(desk.rows(WHERE)) == 1
    desk.execute("DELETE FROM decision_inputs")


async def test_a_replay_goes_through_several_days(desk: Desk, days: DayStore) -> None:
    """Batches before, across and after midnight, in their order."""
    await desk.bring_up("engine-0", "engine-1")
    for _ in range(4):
        desk.clock.now += timedelta(hours=13)
        await days.prepare()
        await desk.judge("engine-0", 6)
        await desk.report("engine-0")
        await desk.judge("engine-1", 1)
    found = {table for table, _ in desk.rows(WHERE)}
    assert len(found) >= 2
    assert_replay_agrees(desk.url)


async def test_a_plain_store_needs_no_day(desk: Desk) -> None:
    """A manager whose days nobody made loses nothing."""
    await desk.bring_up("engine-0", "engine-1")
    engine = open_database(desk.url)
    async with transaction(engine) as connection:
        for name in parts(desk):
            await connection.execute(text(f"DROP TABLE {name}"))
    await Store(engine, Policy(), desk.clock).register_policy()
    await desk.judge("engine-0", 2)
    assert desk.rows("SELECT DISTINCT tableoid::regclass::text FROM verdicts") == [
        ("verdicts_other",)
    ]
    await engine.dispose()


@contextmanager
def dump(url: str) -> Iterator[None]:
    """Hold what a `pg_dump` holds from its beginning to its end."""
    with psycopg.connect(plain_url(url), application_name="pg_dump") as reader:
        names = ", ".join(table.name for table in DIVIDED)
        reader.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE".encode())
        yield


async def test_a_dump_over_midnight_holds_up_no_start(
    desk: Desk, days: DayStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Today's days are there; those a week ahead are made when the dump is over."""
    await days.prepare()
    desk.clock.now += DAY
    with dump(desk.url):
        async with asyncio.timeout(30):
            await prepare_days(days)
    [line] = [vars(one) for one in caplog.records if one.msg == "days_made_later"]
    assert "pg_dump (pid " in line["locks"]
    assert "holds AccessShareLock on verdicts_other" in line["locks"]
    assert await days.prepare() == len(DIVIDED)


async def test_without_today_the_start_waits_for_the_dump(
    desk: Desk, days: DayStore, caplog: pytest.LogCaptureFixture
) -> None:
    """And says what it waits for."""

    def told() -> bool:
        return any(one.msg == "today_not_made" for one in caplog.records)

    with dump(desk.url):
        start = asyncio.create_task(prepare_days(days))
        async with asyncio.timeout(30):
            while not told():  # noqa: ASYNC110 (a line of a log, no event)
                await asyncio.sleep(0.05)
        assert not start.done()
    async with asyncio.timeout(30):
        await start
    assert f"verdicts_{desk.clock.now:%Y%m%d}" in parts(desk)


async def test_a_table_in_use_keeps_no_other_from_its_days(desk: Desk, days: DayStore) -> None:
    """Whoever reads verdicts long leaves the others their today."""
    with psycopg.connect(plain_url(desk.url)) as reader:
        reader.execute("SELECT count(*) FROM verdicts_v1")
        with pytest.raises(LockHeldError):
            await days.prepare()
        assert (await days.blockade()).without_today == ("verdicts",)


async def test_rows_that_have_no_day_need_none(desk: Desk, days: DayStore) -> None:
    """Today's go on where the first of them lie; no start waits for that."""
    await desk.bring_up("engine-0")
    with dump(desk.url):
        assert "verdicts" not in (await days.blockade()).without_today
    assert (await days.blockade()).holders == ()


async def test_a_manager_starts_while_a_dump_runs(site: Site) -> None:
    """As a process: it reads its queues, whatever the day a week ahead is waiting for."""
    await site.start_ready()
    site.kill_all()
    ahead = datetime.now(UTC) + DAYS_AHEAD * DAY
    with psycopg.connect(plain_url(site.database_url)) as connection:
        connection.execute(f"DROP TABLE verdicts_{ahead:%Y%m%d}".encode())
    with dump(site.database_url):
        await site.start_ready()
