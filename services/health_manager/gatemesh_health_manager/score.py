"""The health score: lost points fade by half-life, in any order of arrival the sum is the same."""

import math
from datetime import datetime

from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_health_manager.policy import PoolPolicy, ScorePolicy
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
    record: InstanceRecord,
    verdict: Verdict,
    at: datetime,
    policy: ScorePolicy,
    copied_at: datetime | None = None,
) -> tuple[float, datetime]:
    """Return penalty and its moment after a failure that happened `at` some time.

    Of the copies of one prompt the latest stands for all: an earlier one, `copied_at`, hands on
    what is left of its points, so that a prompt never costs more than one failure.
    """
    points = points_for(verdict, policy)
    if copied_at is not None:
        points -= faded(points, (at - copied_at).total_seconds(), policy.half_life_s)
    latest = max(at, record.penalty_at)
    old = faded(record.penalty, (latest - record.penalty_at).total_seconds(), policy.half_life_s)
    new = faded(points, (latest - at).total_seconds(), policy.half_life_s)
    return min(LARGEST_PENALTY, old + new), latest


def points_for(verdict: Verdict, policy: ScorePolicy) -> float:
    """Return the points that a failure costs; one of a plugged-in gate only where rules name it."""
    named = policy.points.get(verdict.check_level)
    if named is None and verdict.check_level is CheckLevel.PLUGIN:
        return 0.0
    return policy.hard_points if verdict.hard else named or 0.0


def weight_of(record: InstanceRecord, policy: PoolPolicy, now: datetime) -> float:
    """Return the routing weight in tenths: it follows the score, up to an operator's ceiling.

    Only such a ceiling makes it zero. In observe mode it follows nothing else.
    """
    if not record.serving:
        return 0.0
    weight = 1.0 if policy.mode == "observe" else earned_weight(record, policy, now)
    return weight if record.weight_ceiling is None else min(weight, record.weight_ceiling)


def earned_weight(record: InstanceRecord, policy: PoolPolicy, now: datetime) -> float:
    """Return the weight that an instance in rotation has earned."""
    earned = tenths(score_of(record, policy.score, now))
    return max(policy.score.weight_floor, min(earned, ramped(record, earned, policy, now)))


def ramped(record: InstanceRecord, earned: float, policy: PoolPolicy, now: datetime) -> float:
    """Return how far the weight of an instance that came back lately has risen, in tenths."""
    rule, since = policy.slow_start, record.readmitted_at
    elapsed_s = (now - since).total_seconds() if since is not None else rule.ramp_s
    # A moment in the future is of a clock that was set back since.
    if not 0 <= elapsed_s < rule.ramp_s:
        return earned
    risen = rule.first_weight + (earned - rule.first_weight) * elapsed_s / rule.ramp_s
    return tenths(FULL_SCORE * risen)


def tenths(points: float) -> float:
    """Return points of a hundred as a weight in tenths: finer ones would publish every second."""
    return math.floor(points / 10 + 0.5) / 10
