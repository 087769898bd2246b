"""Baselines in the database: sketches that wait, what instances showed, what was published."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import RowMapping, Table, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gatemesh_common.clock import Clock
from gatemesh_common.database import transaction
from gatemesh_common.messages import (
    Baseline,
    BaselineEntry,
    Decoding,
    InstanceState,
    Sketch,
)
from gatemesh_common.sketches import Histogram
from gatemesh_health_manager.baselines import (
    HeldBack,
    Kind,
    Standing,
    entries_of,
    may_count,
    take_in,
)
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.store_tables import (
    BASELINE_SKETCHES,
    BASELINES,
    INCIDENTS,
    INSTANCES,
    TELEMETRY_WINDOWS,
)

log = logging.getLogger(__name__)

MOST_WINDOWS = 2_000
"""Taken in at once; the rest waits for the next round."""

Home = tuple[str, str]
"""Pool and model version."""


class BaselineStore:
    """Learns what is normal, one transaction a round.

    Every method raises as those of `Store` do.
    """

    def __init__(self, engine: AsyncEngine, policy: Policy, clock: Clock) -> None:
        self._engine = engine
        self._policy = policy
        self._clock = clock

    def use_policy(self, policy: Policy) -> None:
        """Learn by these rules from the next round on."""
        self._policy = policy

    async def settle(self) -> None:
        """Take in the sketches that have waited long enough, and rewrite what they change."""
        now = self._clock()
        async with transaction(self._engine) as connection:
            homes = await self._take_in(connection, now)
            homes |= await missing_homes(connection)
            for pool, model_version in sorted(homes | await self._reshared(connection)):
                await self._rewrite(connection, (pool, model_version), now)

    async def baselines(self) -> list[Baseline]:
        """Return the baseline of every model version that an instance serves."""
        async with transaction(self._engine) as connection:
            used = await used_homes(connection)
            rows = (await connection.execute(select(BASELINES))).mappings().all()
        now = self._clock()
        return [message(row, now) for row in rows if (row["pool"], row["model_version"]) in used]

    async def forget(self) -> None:
        """Delete what was learnt of instances and model versions that are long gone."""
        now = self._clock()
        async with transaction(self._engine) as connection:
            used = await used_homes(connection)
            for row in (await connection.execute(select(BASELINES))).mappings().all():
                days = self._policy.for_pool(row["pool"]).baseline.forget_after_days
                await forget_home(connection, row, used, now - timedelta(days=days))

    async def _take_in(self, connection: AsyncConnection, now: datetime) -> set[Home]:
        """Merge the windows that waited long enough; return the homes that they change."""
        rows = [row for row in await waiting(connection) if self._is_due(row, now)]
        if not rows:
            return set()
        standings = await standings_of(connection, {row["instance_id"] for row in rows})
        fresh: dict[tuple[str, str, str], list[Sketch]] = defaultdict(list)
        for row in rows:
            held = held_back(row)
            standing, model_version = standings.get(held.instance_id, (None, ""))
            if may_count(held, standing):
                fresh[row["pool"], model_version, held.instance_id] += held.sketches
        for (pool, model_version, instance_id), sketches in fresh.items():
            kept = await kept_of(connection, pool, model_version, instance_id)
            keep = self._policy.for_pool(pool).baseline.keep_samples
            changed = take_in(kept.get(instance_id, {}), sketches, keep)
            await save_kept(connection, (pool, model_version, instance_id), changed, now)
        await release(connection, rows)
        return {(pool, model_version) for pool, model_version, _ in fresh}

    def _is_due(self, row: RowMapping, now: datetime) -> bool:
        settle = timedelta(seconds=self._policy.for_pool(row["pool"]).baseline.settle_s)
        return bool(row["window_end"] <= now - settle)

    async def _reshared(self, connection: AsyncConnection) -> set[Home]:
        """Return the homes whose published share for the shadow is not the policy's."""
        rows = (await connection.execute(select(BASELINES))).mappings().all()
        return {
            (row["pool"], row["model_version"])
            for row in rows
            if row["shadow_share"] != self._policy.for_pool(row["pool"]).baseline.shadow_share
        }

    async def _rewrite(self, connection: AsyncConnection, home: Home, now: datetime) -> None:
        policy = self._policy.for_pool(home[0]).baseline
        entries = entries_of(await kept_of(connection, *home), policy)
        written = [entry.model_dump(mode="json") for entry in entries]
        query = select(BASELINES).where(at_home(BASELINES, home)).with_for_update()
        before = (await connection.execute(query)).mappings().first()
        if before and (before["entries"], before["shadow_share"]) == (written, policy.shadow_share):
            return
        # Beyond the clock, so that a database that was lost does not begin behind the agents.
        version = max(int(now.timestamp()), before["version"] + 1 if before else 1)
        row = {
            "pool": home[0],
            "model_version": home[1],
            "version": version,
            "shadow_share": policy.shadow_share,
            "entries": written,
            "changed_at": now,
        }
        await upsert(connection, BASELINES, [row])


def at_home(table: Table, home: Home) -> Any:
    """Return the condition that names a home's rows."""
    return (table.c.pool == home[0]) & (table.c.model_version == home[1])


async def waiting(connection: AsyncConnection) -> Sequence[RowMapping]:
    """Lock and return the oldest windows whose sketches wait; another round's are left alone."""
    columns = TELEMETRY_WINDOWS.c
    query = (
        select(
            columns.message_id,
            columns.pool,
            columns.instance_id,
            columns.incarnation,
            columns.window_start,
            columns.window_end,
            columns.sketches,
        )
        .where(columns.sketches.is_not(None))
        .order_by(columns.window_end)
        .limit(MOST_WINDOWS)
        .with_for_update(skip_locked=True)
    )
    return (await connection.execute(query)).mappings().all()


async def release(connection: AsyncConnection, rows: Sequence[RowMapping]) -> None:
    """Let go of sketches that were taken in or refused."""
    columns, ends = TELEMETRY_WINDOWS.c, [row["window_end"] for row in rows]
    done = columns.message_id.in_([row["message_id"] for row in rows])
    # The days outside need not be looked through.
    inside = columns.window_end.between(min(ends), max(ends))
    await connection.execute(update(TELEMETRY_WINDOWS).where(done, inside).values(sketches=None))


def held_back(row: RowMapping) -> HeldBack:
    """Return the sketches of a row; absurd ones, stored by an earlier release, are left out."""
    sketches: list[Sketch] = []
    for sketch in row["sketches"]:
        try:
            sketches.append(Sketch.model_validate(sketch))
        except ValidationError:
            log.warning("sketch_dropped", extra={"instance_id": row["instance_id"]})
    return HeldBack(row["instance_id"], row["incarnation"], row["window_start"], tuple(sketches))


async def standings_of(
    connection: AsyncConnection, names: set[str]
) -> dict[str, tuple[Standing, str]]:
    """Return how some instances stand, and their model versions."""
    query = select(INCIDENTS.c.instance_id).where(INCIDENTS.c.status.in_(("open", "held")))
    troubled = set((await connection.execute(query)).scalars())
    rows = await connection.execute(select(INSTANCES).where(INSTANCES.c.instance_id.in_(names)))
    return {
        row["instance_id"]: (
            Standing(
                InstanceState(row["state"]),
                row["state_since"],
                row["incarnation"],
                row["instance_id"] in troubled,
            ),
            row["model_version"],
        )
        for row in rows.mappings()
    }


async def kept_of(
    connection: AsyncConnection, pool: str, model_version: str, instance_id: str | None = None
) -> dict[str, dict[Kind, Histogram]]:
    """Return what was learnt of the instances of a home, or of one of them."""
    query = select(BASELINE_SKETCHES).where(at_home(BASELINE_SKETCHES, (pool, model_version)))
    if instance_id is not None:
        query = query.where(BASELINE_SKETCHES.c.instance_id == instance_id)
    found: dict[str, dict[Kind, Histogram]] = defaultdict(dict)
    for row in (await connection.execute(query)).mappings():
        kind = (row["metric"], Decoding(row["decoding"]), row["script"])
        bins = {int(place): weight for place, weight in row["bins"].items()}
        found[row["instance_id"]][kind] = Histogram(row["width"], bins)
    return found


async def save_kept(
    connection: AsyncConnection,
    owner: tuple[str, str, str],
    histograms: Mapping[Kind, Histogram],
    now: datetime,
) -> None:
    """Write down what was learnt of one instance."""
    pool, model_version, instance_id = owner
    rows = [
        {
            "pool": pool,
            "model_version": model_version,
            "instance_id": instance_id,
            "metric": metric,
            "decoding": decoding.value,
            "script": script,
            "width": histogram.width,
            "count": histogram.count,
            "bins": {str(place): round(weight, 3) for place, weight in histogram.bins.items()},
            "updated_at": now,
        }
        for (metric, decoding, script), histogram in histograms.items()
    ]
    await upsert(connection, BASELINE_SKETCHES, rows)


async def upsert(connection: AsyncConnection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows; one that is there already is overwritten."""
    if not rows:
        return
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    fields = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=fields), list(rows)
    )


async def used_homes(connection: AsyncConnection) -> set[Home]:
    """Return the pools and model versions that observed instances serve."""
    observed = INSTANCES.c.base_url.is_not(None)
    query = select(INSTANCES.c.pool, INSTANCES.c.model_version).where(observed).distinct()
    return {(row.pool, row.model_version) for row in await connection.execute(query)}


async def missing_homes(connection: AsyncConnection) -> set[Home]:
    """Return the homes in use that have no baseline yet, not even an empty one."""
    rows = await connection.execute(select(BASELINES.c.pool, BASELINES.c.model_version))
    return await used_homes(connection) - {(row.pool, row.model_version) for row in rows}


async def forget_home(
    connection: AsyncConnection, row: RowMapping, used: set[Home], before: datetime
) -> None:
    """Delete the sketches of a home that are older, and the home itself when nobody serves it."""
    home = (row["pool"], row["model_version"])
    old = BASELINE_SKETCHES.c.updated_at < before
    await connection.execute(delete(BASELINE_SKETCHES).where(at_home(BASELINE_SKETCHES, home), old))
    if home not in used and row["changed_at"] < before:
        await connection.execute(delete(BASELINES).where(at_home(BASELINES, home)))


def message(row: RowMapping, now: datetime) -> Baseline:
    """Return a baseline as it travels."""
    return Baseline(
        timestamp=now,
        pool=row["pool"],
        model_version=row["model_version"],
        version=row["version"],
        shadow_share=row["shadow_share"],
        entries=tuple(BaselineEntry.model_validate(entry) for entry in row["entries"]),
    )
