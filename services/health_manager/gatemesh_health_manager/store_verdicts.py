"""Verdicts in the database: inserted in bulk, counted by index over one window."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_common.messages import Verdict
from gatemesh_health_manager.conditions import counts_for_a
from gatemesh_health_manager.facts import Facts, Failure, densest_window, evidence_time
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.on_verdict import is_failure_of_present_life
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.store_rows import verdict_row
from gatemesh_health_manager.store_tables import VERDICTS


async def insert_and_count(
    connection: AsyncConnection,
    policy: Policy,
    fleet: Fleet,
    verdicts: Sequence[Verdict],
    now: datetime,
) -> dict[str, Facts]:
    """Insert verdicts and return the densest window around them, for instances where it matters."""
    if not verdicts:
        return {}
    rows = [verdict_row(verdict, fleet.records[verdict.instance_id], now) for verdict in verdicts]
    await connection.execute(insert(VERDICTS), rows)
    return {
        instance_id: await count_window(connection, policy, fleet.records[instance_id], fresh, now)
        for instance_id, fresh in counted(policy, fleet, verdicts).items()
    }


def counted(policy: Policy, fleet: Fleet, verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts that condition A may be broken by, of instances it can still act on."""
    by_instance: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        record = fleet.records[verdict.instance_id]
        rule = policy.for_pool(record.pool).condition_a
        open_to_a = record.serving and record.incident is None
        if (
            open_to_a
            and counts_for_a(verdict, rule)
            and is_failure_of_present_life(record, verdict)
        ):
            by_instance[verdict.instance_id].append(verdict)
    return by_instance


async def count_window(
    connection: AsyncConnection,
    policy: Policy,
    record: InstanceRecord,
    fresh: Sequence[Verdict],
    now: datetime,
) -> Facts:
    """Return the densest window that holds one of the fresh failures."""
    rule = policy.for_pool(record.pool).condition_a
    span = timedelta(seconds=rule.window_s)
    moments = [evidence_time(verdict, now) for verdict in fresh]
    query = select(VERDICTS.c.counted_at, VERDICTS.c.prompt_key, VERDICTS.c.message_id).where(
        VERDICTS.c.instance_id == record.instance_id,
        VERDICTS.c.incarnation == record.incarnation,
        VERDICTS.c.outcome == "failed",
        VERDICTS.c.check_level.in_([level.value for level in rule.levels]),
        VERDICTS.c.counted_at.between(min(moments) - span, max(moments) + span),
    )
    if record.evidence_since is not None:
        query = query.where(VERDICTS.c.counted_at > record.evidence_since)
    ids = {verdict.message_id for verdict in fresh}
    failures = [
        Failure(at, prompt, message_id in ids)
        for at, prompt, message_id in (await connection.execute(query)).tuples()
    ]
    return densest_window(failures, rule.window_s, rule.max_per_prompt, rule.min_prompts)
