"""The health score: lost points fade by half-life, in any order of arrival the sum is the same."""

import math
from datetime import datetime

from gatemesh_common.messages import Verdict
from gatemesh_health_manager.policy import ScorePolicy
from gatemesh_health_manager.record import InstanceRecord

FULL_SCORE = 100.0
LARGEST_PENALTY = 100_000.0


def faded(penalty: float, elapsed_s: float, half_life_s: float) -> float:
    """Return what is left of a penalty; a clock set back changes nothing."""
    return penalty * math.exp2(-max(0.0, elapsed_s) / half_life_s)


def score_of(record: InstanceRecord, policy: ScorePolicy, now: datetime) -> float:
    """Return the score, 0 to 100, at a moment."""
    elapsed_s = (now - record.penalty_at).total_seconds()
    return max(0.0, FULL_SCORE - faded(record.penalty, elapsed_s, policy.half_life_s))


def penalised(
    record: InstanceRecord, verdict: Verdict, at: datetime, policy: ScorePolicy
) -> tuple[float, datetime]:
    """Return penalty and its moment after a failure that happened `at` some time."""
    points = policy.hard_points if verdict.hard else policy.points.get(verdict.check_level, 0.0)
    latest = max(at, record.penalty_at)
    old = faded(record.penalty, (latest - record.penalty_at).total_seconds(), policy.half_life_s)
    new = faded(points, (latest - at).total_seconds(), policy.half_life_s)
    return min(LARGEST_PENALTY, old + new), latest


def weight_of(record: InstanceRecord, policy: ScorePolicy, now: datetime) -> float:
    """Return the routing weight in tenths: it follows the score and never falls to zero."""
    if not record.serving:
        return 0.0
    # Tenths, so that healing does not publish a table every second.
    tenths = math.floor(score_of(record, policy, now) / 10 + 0.5) / 10
    return max(policy.weight_floor, tenths)
