"""Verdicts in the database: inserted in bulk, counted by index over one window."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_common.database import Answer, Query, ask_together, copy_rows, insert_few
from gatemesh_common.messages import Verdict
from gatemesh_health_manager.batch import Counting, counted, gathered
from gatemesh_health_manager.facts import (
    Copies,
    Facts,
    Failure,
    copy_key,
    evidence_time,
    prompt_key,
)
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.on_verdict import is_failure_of_present_life
from gatemesh_health_manager.own_conditions import OwnCondition
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.storable import storable
from gatemesh_health_manager.store_rows import VERDICT_NAMES

COPIES_FADE = 60
"""Half-lives after which nothing of a copy is left: 2^-60 of its points is lost in rounding."""
FEW = 20
"""Verdicts that are inserted by statements, which need not wait for each other; more are copied."""
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)

# Of the copies of one prompt within one window's length, the first and the last few stand for all
# of them: whatever window holds one between holds those before it or those after it. So the rows
# that are read are bounded by prompts, not by the rate of failures.
WINDOW = text(
    """
    SELECT instance_id, counted_at, prompt_key, tenant FROM (
        SELECT instance_id, counted_at, prompt_key, tenant,
            row_number() OVER (copies ORDER BY counted_at, id) AS first,
            row_number() OVER (copies ORDER BY counted_at DESC, id DESC) AS last
        FROM (
            SELECT v.id, v.instance_id, v.counted_at, v.prompt_key,
                CASE WHEN :by_tenant THEN coalesce(v.tenant, '') ELSE '' END AS tenant,
                floor(extract(epoch FROM v.counted_at) / :window_s) AS stretch
            FROM unnest(CAST(:names AS text[]), CAST(:lives AS int[]),
                CAST(:since AS timestamptz[]), CAST(:until AS timestamptz[]))
                AS w (name, life, since, until)
            JOIN verdicts v ON v.instance_id = w.name AND v.incarnation = w.life
                AND v.counted_at >= w.since AND v.counted_at <= w.until
                AND v.received_at >= :received_since
                AND v.outcome = 'failed' AND v.check_level = ANY(CAST(:levels AS text[]))
                AND v.attribution <> 'request'
                AND (CAST(:reasons AS text[]) IS NULL
                    OR v.reason = ANY(CAST(:reasons AS text[])))
                AND (CAST(:hard AS boolean) IS NULL OR v.hard = CAST(:hard AS boolean))
        ) AS wanted
        WINDOW copies AS (PARTITION BY instance_id, prompt_key, tenant, stretch)
    ) AS numbered
    WHERE first <= :per_prompt OR last <= :per_prompt"""
)


# The latest earlier failure of each prompt by the index of copies, however many there are.
# Nothing is counted later than it is received, so days before `since` are not looked at.
COPIES = text(
    """
    SELECT w.name, w.prompt, w.level, w.hard, v.counted_at
    FROM unnest(CAST(:names AS text[]), CAST(:lives AS int[]), CAST(:prompts AS text[]),
        CAST(:levels AS text[]), CAST(:hards AS boolean[]))
        AS w (name, life, prompt, level, hard)
    CROSS JOIN LATERAL (
        SELECT counted_at FROM verdicts
        WHERE instance_id = w.name AND incarnation = w.life AND prompt_key = w.prompt
            AND check_level = w.level AND hard = w.hard
            AND outcome = 'failed' AND attribution <> 'request'
            AND counted_at >= :since AND received_at >= :since
        ORDER BY counted_at DESC LIMIT 1
    ) AS v"""
)


async def look_back(
    connection: AsyncConnection,
    policy: Policy,
    fleet: Fleet,
    verdicts: Sequence[Verdict],
    now: datetime,
) -> tuple[Copies, dict[str, Facts]]:
    """Return when prompts of failures failed before, and the densest windows around them.

    As far as either can matter. What is not yet stored is at hand.
    """
    counting = counted(policy, fleet, verdicts)
    copies = copies_query(fleet, verdicts, now)
    asked = [Query(WINDOW, window_query(one, fleet, now)) for one in counting]
    if copies is not None:
        asked.append(Query(COPIES, copies))
    answers = await ask_together(connection, asked) if asked else []
    earlier = answers.pop() if copies is not None else []
    found = [
        (one, windows(one, fleet, now, answer))
        for one, answer in zip(counting, answers, strict=True)
    ]
    return copies_of(earlier), gathered(found)


def copies_of(answer: Answer) -> Copies:
    """Return the latest earlier failure of each prompt."""
    names = ("name", "prompt", "level", "hard")
    return Copies({tuple(row[name] for name in names): row["counted_at"] for row in answer})


def copies_query(
    fleet: Fleet, verdicts: Sequence[Verdict], now: datetime
) -> Mapping[str, Any] | None:
    """Return the parameters of the statement that looks for earlier copies; none without need."""
    counting = [
        verdict
        for verdict in verdicts
        if is_failure_of_present_life(fleet.records[verdict.instance_id], verdict)
    ]
    if not counting:
        return None
    wanted = sorted({copy_key(verdict) for verdict in counting})
    names, prompts, levels, hards = zip(*wanted, strict=True)
    return {
        "since": copies_matter_from(fleet, counting, now),
        "names": list(names),
        "lives": [fleet.records[name].incarnation for name in names],
        "prompts": [storable(prompt) for prompt in prompts],
        "levels": [str(level) for level in levels],
        "hards": list(hards),
    }


def copies_matter_from(fleet: Fleet, verdicts: Sequence[Verdict], now: datetime) -> datetime:
    """Return from when on an earlier copy of one of these failures changes what that costs."""
    at = min(now, *(verdict.timestamp for verdict in verdicts))
    half_life_s = max(fleet.policy.for_pool(pool).score.half_life_s for pool in fleet.pools)
    reach_s = min(COPIES_FADE * half_life_s, (at - EARLIEST).total_seconds())
    return at - timedelta(seconds=reach_s)


async def insert(connection: AsyncConnection, rows: Sequence[Sequence[Any]]) -> None:
    """Insert few verdicts in their order; together with others."""
    if rows:
        await insert_few(connection, "verdicts", VERDICT_NAMES, rows)


async def copy(connection: AsyncConnection, rows: Sequence[Sequence[Any]]) -> None:
    """Insert many verdicts in their order."""
    await copy_rows(connection, "verdicts", VERDICT_NAMES, rows)


def windows(counting: Counting, fleet: Fleet, now: datetime, answer: Answer) -> dict[str, Facts]:
    """Return for each instance of one pool the densest window that holds a fresh failure."""
    failures = fresh_failures(counting, fleet, now)
    for row in answer:
        failure = Failure(row["counted_at"], row["prompt_key"], tenant=row["tenant"])
        failures[row["instance_id"]].append(failure)
    return {instance_id: counting.densest(found) for instance_id, found in failures.items()}


def fresh_failures(
    counting: Counting, fleet: Fleet, now: datetime
) -> defaultdict[str, list[Failure]]:
    """Return the failures of the batch itself by instance, worded as the table will have them."""
    failures: defaultdict[str, list[Failure]] = defaultdict(list)
    for verdict in counting.verdicts:
        at, since = evidence_time(verdict, now), fleet.records[verdict.instance_id].evidence_since
        # A clock that was set back leaves answered evidence in the future.
        if since is None or at > since:
            tenant = storable(verdict.tenant or "") if counting.by_tenant else ""
            prompt = storable(prompt_key(verdict))
            failures[verdict.instance_id].append(Failure(at, prompt, fresh=True, tenant=tenant))
    return failures


def window_query(counting: Counting, fleet: Fleet, now: datetime) -> Mapping[str, Any]:
    """Return the parameters of the one statement that reads every window."""
    rule = counting.rule
    span = timedelta(seconds=rule.window_s)
    moments: dict[str, list[datetime]] = defaultdict(list)
    for verdict in counting.verdicts:
        moments[verdict.instance_id].append(evidence_time(verdict, now))
    records = [fleet.records[name] for name in moments]
    after = timedelta(microseconds=1)
    own = rule if isinstance(rule, OwnCondition) else None
    since = [
        max(min(moments[record.instance_id]) - span, record.evidence_since + after)
        if record.evidence_since
        else min(moments[record.instance_id]) - span
        for record in records
    ]
    return {
        "names": list(moments),
        "lives": [record.incarnation for record in records],
        "since": since,
        "received_since": min(since),
        "until": [max(found) + span for found in moments.values()],
        "levels": sorted(level.value for level in rule.levels),
        "reasons": sorted(own.reasons) or None if own else None,
        "hard": own.hard if own else None,
        "by_tenant": counting.by_tenant,
        "window_s": rule.window_s,
        "per_prompt": rule.max_per_prompt,
    }
