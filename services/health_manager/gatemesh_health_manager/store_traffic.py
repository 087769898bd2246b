"""Telemetry in the database: added up per instance and rule, for the conditions that go by it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_common.messages import CheckLevel
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.measuring import Measure, Measures, Traffic, burns, rates
from gatemesh_health_manager.own_conditions import (
    BurnCondition,
    RateCondition,
    TelemetryCondition,
)
from gatemesh_health_manager.record import InstanceRecord

MEASURE_EVERY = timedelta(seconds=10)
"""Time between two looks: agents send windows every few seconds, and each look reads many."""
OF_ANSWERS = frozenset(CheckLevel) - {CheckLevel.L5}
"""Gates that judge answers of clients; suites are nobody's answers."""

TRAFFIC = text(
    """
    SELECT w.name, t.answers, t.server_errors, f.failures, t.unguarded, t.tokens, t.busy_s,
        d.first_tokens
    FROM unnest(CAST(:names AS text[]), CAST(:lives AS int[]), CAST(:since AS timestamptz[]))
        AS w (name, life, since)
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(requests - client_errors), 0)::bigint AS answers,
            coalesce(sum(server_errors), 0)::bigint AS server_errors,
            coalesce(sum(unguarded), 0)::bigint AS unguarded,
            coalesce(sum(tokens), 0)::bigint AS tokens,
            coalesce(sum(in_flight * extract(epoch FROM window_end - window_start)), 0)
                ::double precision AS busy_s
        FROM telemetry_windows
        WHERE instance_id = w.name AND incarnation = w.life AND window_end > w.since
            AND window_start >= w.since
    ) AS t
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT request_id) AS failures FROM verdicts
        WHERE instance_id = w.name AND incarnation = w.life AND counted_at > w.since
            AND outcome = 'failed' AND attribution <> 'request'
            AND check_level = ANY(CAST(:levels AS text[]))
            AND (CAST(:reasons AS text[]) IS NULL OR reason = ANY(CAST(:reasons AS text[])))
    ) AS f
    CROSS JOIN LATERAL (
        SELECT coalesce(jsonb_object_agg(place, answers), '{}') AS first_tokens FROM (
            SELECT e.key AS place, sum(e.value::bigint)::bigint AS answers
            FROM telemetry_windows, jsonb_each_text(first_tokens) AS e
            WHERE :by_delay AND instance_id = w.name AND incarnation = w.life
                AND window_end > w.since AND window_start >= w.since
            GROUP BY e.key
        ) AS summed
    ) AS d"""
)


async def measure(connection: AsyncConnection, fleet: Fleet, now: datetime) -> dict[str, Measures]:
    """Return what the conditions over telemetry go by, of each instance in rotation."""
    found: dict[str, list[tuple[str, Measure]]] = defaultdict(list)
    for rule, serving in looked_at(fleet):
        for name, one in (await measure_rule(connection, rule, serving, now)).items():
            found[name].append((rule.name, one))
    return {name: tuple(measures) for name, measures in found.items()}


def looked_at(fleet: Fleet) -> Iterator[tuple[TelemetryCondition, Sequence[InstanceRecord]]]:
    """Yield the rules over telemetry of each pool, with its instances in rotation."""
    for pool in fleet.pools:
        serving = [record for record in fleet.members(pool) if record.serving]
        for rule in fleet.policy.for_pool(pool).own_conditions if serving else ():
            if isinstance(rule, TelemetryCondition):
                yield rule, serving


async def measure_rule(
    connection: AsyncConnection,
    rule: TelemetryCondition,
    records: Sequence[InstanceRecord],
    now: datetime,
) -> dict[str, Measure]:
    """Return the measure of each instance of a pool about which one can be taken."""
    if isinstance(rule, RateCondition):
        return rates(rule, await add_up(connection, rule, records, now, rule.window_s))
    fast = await add_up(connection, rule, records, now, rule.fast_s)
    if all(traffic.answers < rule.min_answers for traffic in fast.values()):
        return {}
    return burns(rule, fast, await add_up(connection, rule, records, now, rule.slow_s))


async def add_up(
    connection: AsyncConnection,
    rule: RateCondition | BurnCondition,
    records: Sequence[InstanceRecord],
    now: datetime,
    span_s: float,
) -> dict[str, Traffic]:
    """Return what each instance answered on its present life within a span."""
    rows = await connection.execute(TRAFFIC, traffic_query(rule, records, now, span_s))
    return {row.name: traffic_of(row) for row in rows}


def traffic_of(row: Row[Any]) -> Traffic:
    """Return the sums of one instance."""
    return Traffic(
        answers=row.answers,
        server_errors=row.server_errors,
        failures=row.failures,
        unguarded=row.unguarded,
        tokens=row.tokens,
        busy_s=row.busy_s,
        first_tokens={int(place): count for place, count in row.first_tokens.items()},
    )


def traffic_query(
    rule: RateCondition | BurnCondition,
    records: Sequence[InstanceRecord],
    now: datetime,
    span_s: float,
) -> Mapping[str, Any]:
    """Return the parameters of the statement; what has been answered already is left out."""
    since = now - timedelta(seconds=span_s)
    return {
        "names": [record.instance_id for record in records],
        "lives": [record.incarnation for record in records],
        "since": [max(since, record.evidence_since or since) for record in records],
        "levels": sorted(level.value for level in rule.levels or OF_ANSWERS),
        "reasons": sorted(reason.value for reason in rule.reasons) or None,
        "by_delay": isinstance(rule, RateCondition) and rule.of == "first_token_p95",
    }
