"""Pools and instances in the database: locked, read, and written back when they changed."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, Text, any_, bindparam, delete, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_common.database import Answer, Query, ask_together
from gatemesh_health_manager import store_days
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.known_records import KnownRecords
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision, InstanceRecord
from gatemesh_health_manager.storable import Row, storable
from gatemesh_health_manager.store_rows import (
    command_end_row,
    command_row,
    incident_row,
    instance_row,
    read_incident,
    transition_row,
)
from gatemesh_health_manager.store_tables import (
    COMMANDS,
    INCIDENTS,
    INSTANCES,
    POLICY_VERSIONS,
    POOLS,
    REFUSED_COMMANDS,
    TRANSITIONS,
)

POOL_FIELDS = (
    "routing_version",
    "paused",
    "braked_at",
    "brake_reason",
    "brake_reset_at",
    "brake_reset",
    "suspect_version",
)
"""Fields of a pool that are stored as they are."""


async def save_policy(connection: AsyncConnection, policy: Policy, now: datetime) -> None:
    """Keep the rules under their version, and what the views need of them."""
    row = {
        "version": policy.version,
        "body": json.loads(policy.canonical()),
        "first_used_at": now,
    }
    await connection.execute(insert(POLICY_VERSIONS).values(row).on_conflict_do_nothing())
    for pool in (await connection.execute(select(POOLS.c.pool).order_by(POOLS.c.pool))).scalars():
        shown = shown_of(policy, pool)
        await connection.execute(update(POOLS).where(POOLS.c.pool == pool).values(shown))


def shown_of(policy: Policy, pool: str) -> Row:
    """Return the rules of a pool that its row shows to the views."""
    rules = policy.for_pool(pool)
    return {"half_life_s": rules.score.half_life_s, "mode": rules.mode}


HOMES = text(
    "SELECT instance_id, pool FROM instances WHERE instance_id = ANY(CAST(:names AS text[]))"
)


async def pools_of(connection: AsyncConnection, names: Collection[str]) -> dict[str, str]:
    """Return the pools of those of some instances that are known."""
    if not names:
        return {}
    found = await connection.execute(HOMES, {"names": list(names)})
    return {row.instance_id: row.pool for row in found}


def locking() -> Select[Any]:
    """Return the query that locks every pool, in order of their names.

    In one order, so that two transactions never wait in a circle.
    """
    return select(POOLS).order_by(POOLS.c.pool).with_for_update()


GOES_ON = text("incidents.status IN ('open', 'held')")
THESE = any_(bindparam("pools", type_=ARRAY(Text)))
LOCK_POOLS = locking().where(POOLS.c.pool == THESE)
LOCK_INSTANCES = (
    select(INSTANCES)
    .where(INSTANCES.c.pool == THESE)
    .order_by(INSTANCES.c.instance_id)
    .with_for_update()
)
INCIDENTS_INSIDE = (
    select(INCIDENTS)
    .join(INSTANCES, INSTANCES.c.instance_id == INCIDENTS.c.instance_id)
    .where(INSTANCES.c.pool == THESE, GOES_ON)
)
LOCKING = (LOCK_POOLS, LOCK_INSTANCES, INCIDENTS_INSIDE)
"""Each sees what was committed before the lock of the first was had."""


async def lock_pools(
    connection: AsyncConnection,
    policy: Policy,
    known: KnownRecords,
    pools: Collection[str],
    first: Sequence[Query] = (),
) -> tuple[Fleet, Sequence[Answer]]:
    """Lock some pools whole; one that is not there yet is made. Answers other queries first."""
    asked = [Query(one, {"pools": sorted(pools)}) for one in LOCKING]
    *answers, found, instances, incidents = await ask_together(connection, [*first, *asked])
    missing = set(pools) - {row["pool"] for row in found}
    if missing:
        await _make_pools(connection, policy, missing)
        found, instances, incidents = await ask_together(connection, asked)
    fleet = Fleet(policy, map(_pool, found), ())
    _put_instances(fleet, known, instances, incidents)
    return fleet, answers


MAY_MAKE_POOLS = text("SELECT pg_advisory_xact_lock_shared(hashtext('gatemesh.pools'))")
MAKE_NO_POOLS = text("SELECT pg_advisory_xact_lock(hashtext('gatemesh.pools'))")


async def make_no_pools(connection: AsyncConnection) -> None:
    """Wait for those who make a pool, and have others wait until this transaction has ended.

    Locks on rows cannot do so: a pool that is being made has none that others see.
    """
    await connection.execute(MAKE_NO_POOLS)


async def _make_pools(connection: AsyncConnection, policy: Policy, pools: Collection[str]) -> None:
    await connection.execute(MAY_MAKE_POOLS)
    fresh = [
        {"pool": pool, "routing_version": 0, "paused": False, **shown_of(policy, pool)}
        for pool in sorted(pools)
    ]
    await insert_rows(connection, POOLS, fresh)


async def lock_all(connection: AsyncConnection, policy: Policy, known: KnownRecords) -> Fleet:
    """Lock every pool."""
    fleet = Fleet(policy, map(_pool, (await connection.execute(locking())).mappings()), ())
    [instances, incidents] = await ask_together(
        connection,
        [Query(one, {"pools": sorted(fleet.pools)}) for one in (LOCK_INSTANCES, INCIDENTS_INSIDE)],
    )
    _put_instances(fleet, known, instances, incidents)
    return fleet


READ_POOLS = select(POOLS).order_by(POOLS.c.pool)
READ_INSTANCES = select(INSTANCES).order_by(INSTANCES.c.instance_id)
READ_INCIDENTS = select(INCIDENTS).where(GOES_ON)


async def read_all(connection: AsyncConnection, policy: Policy, known: KnownRecords) -> Fleet:
    """Read every pool without a lock, at one moment."""
    # One snapshot for all statements, or a version could be paired with older rows.
    await connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    pools, instances, incidents = await ask_together(
        connection, [Query(one, {}) for one in (READ_POOLS, READ_INSTANCES, READ_INCIDENTS)]
    )
    fleet = Fleet(policy, map(_pool, pools), ())
    _put_instances(fleet, known, instances, incidents)
    return fleet


def _pool(row: Mapping[str, Any]) -> PoolRecord:
    return PoolRecord(row["pool"], **{name: row[name] for name in POOL_FIELDS})


def _put_instances(fleet: Fleet, known: KnownRecords, instances: Answer, incidents: Answer) -> None:
    waiting = {row["instance_id"]: read_incident(row) for row in incidents}
    for row in instances:
        record = known.record(row, waiting.get(row["instance_id"]))
        fleet.put(record)
        fleet.stored[record.instance_id] = record


# Reads the windows of one routine interval at most, by index.
REQUESTS = text(
    """
    SELECT w.name, sum(t.requests)::bigint AS requests
    FROM unnest(CAST(:names AS text[]), CAST(:lives AS int[]), CAST(:since AS timestamptz[]))
        AS w (name, life, since)
    JOIN telemetry_windows t ON t.instance_id = w.name AND t.window_end > w.since
        AND t.incarnation = w.life
    GROUP BY w.name"""
)


async def requests_since_probe(
    connection: AsyncConnection, fleet: Fleet, now: datetime
) -> dict[str, int]:
    """Return the client requests since the last probe, of instances where they may call for one."""
    waiting = [
        (record, record.probed_at)
        for record in fleet.records.values()
        if record.probed_at is not None and may_count(record, record.probed_at, fleet, now)
    ]
    if not waiting:
        return {}
    query = {
        "names": [record.instance_id for record, _ in waiting],
        "lives": [record.incarnation for record, _ in waiting],
        "since": [probed_at for _, probed_at in waiting],
    }
    rows = await connection.execute(REQUESTS, query)
    return {row.name: row.requests for row in rows}


def may_count(record: InstanceRecord, probed_at: datetime, fleet: Fleet, now: datetime) -> bool:
    """True where the count of requests decides: probed lately, but not just now."""
    rule = fleet.policy.for_pool(record.pool).probes
    age_s = (now - probed_at).total_seconds()
    idle = record.serving and record.ticket is None
    return rule.enabled and idle and rule.min_gap_s <= age_s < rule.every_s


async def insert_rows(connection: AsyncConnection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows; one whose key is there already is left as it is. It answers nothing."""
    if rows:
        await connection.execute(insert(table).inline().on_conflict_do_nothing(), list(rows))


# A replay begins with a kept fleet: the last one before stays, and what came after it.
LAST_FLEET = text("SELECT max(at) FROM decision_inputs WHERE kind = 'fleet' AND at < :before")


async def forget_history(connection: AsyncConnection, before: datetime) -> int:
    """Drop inputs of decisions and refused commands from before a moment; return how many.

    Inputs go by whole days.
    """
    old = REFUSED_COMMANDS.c.received_at < before
    gone = (await connection.execute(delete(REFUSED_COMMANDS).where(old))).rowcount
    last_fleet = (await connection.execute(LAST_FLEET, {"before": before})).scalar()
    if last_fleet is not None:
        gone += await store_days.drop_days(connection, store_days.INPUTS, last_fleet)
    return gone


async def save(
    connection: AsyncConnection,
    fleet: Fleet,
    decisions: Sequence[Decision],
    policy_version: str,
    now: datetime,
) -> None:
    """Write down what decisions changed; ends come first, so that beginnings find their place."""
    await _save_pools(connection, fleet)
    await _save_instances(connection, fleet)
    await _save_incidents(connection, decisions, policy_version)
    ends = [command_end_row(end, now) for decision in decisions for end in decision.ends]
    await _end_commands(connection, ends)
    orders = [command_row(order, now) for decision in decisions for order in decision.commands]
    steps = [
        transition_row(step, decision.record, policy_version, now)
        for decision in decisions
        for step in decision.transitions
    ]
    for table, rows in ((COMMANDS, orders), (TRANSITIONS, steps)):
        if rows:
            await connection.execute(insert(table).inline(), rows)


CHANGES_OF_INCIDENTS = (
    *("condition", "status", "playbook", "steps", "cause", "reason", "would", "ended_at"),
    "core_dump",
)


@cache
def upsert(table: Table, key: str, names: tuple[str, ...]) -> Insert:
    """Return the statement that inserts rows, and changes some columns of those that are there."""
    statement = insert(table).inline()
    fields = {name: statement.excluded[name] for name in names}
    return statement.on_conflict_do_update(index_elements=[key], set_=fields)


async def _save_pools(connection: AsyncConnection, fleet: Fleet) -> None:
    for pool in fleet.pools.values():
        if fleet.loaded.get(pool.pool) != pool:
            changed = {name: storable(getattr(pool, name)) for name in POOL_FIELDS}
            await connection.execute(update(POOLS).where(POOLS.c.pool == pool.pool).values(changed))


async def _save_instances(connection: AsyncConnection, fleet: Fleet) -> None:
    rows = [
        instance_row(record)
        for record in fleet.records.values()
        if fleet.stored.get(record.instance_id) != record
    ]
    if rows:
        names = tuple(name for name in rows[0] if name != "instance_id")
        await connection.execute(upsert(INSTANCES, "instance_id", names), rows)


async def _save_incidents(
    connection: AsyncConnection, decisions: Iterable[Decision], policy_version: str
) -> None:
    rows = [
        incident_row(incident, decision.record, policy_version)
        for decision in decisions
        for incident in decision.incidents
    ]
    if rows:
        await connection.execute(upsert(INCIDENTS, "incident_id", CHANGES_OF_INCIDENTS), rows)


async def _end_commands(connection: AsyncConnection, rows: Sequence[Row]) -> None:
    if rows:
        one = update(COMMANDS).where(COMMANDS.c.command_id == bindparam("the_command"))
        names = ("status", "reason", "ended_at")
        await connection.execute(one.values({name: bindparam(name) for name in names}), list(rows))
