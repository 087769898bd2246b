"""The score falls by gate and heals with time, whatever the order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.messages import CheckLevel, InstanceState, Verdict
from gatemesh_health_manager.score import faded, penalised, points_for, score_of, weight_of

from .samples import NOW, POLICY, at, hard, in_pool, record, verdict

RULE = POLICY.score


def after(*failures: Verdict, now_s: float = 0) -> float:
    """Return the score after some failures."""
    about = record()
    for failure in failures:
        penalty, moment = penalised(about, failure, failure.timestamp, RULE)
        about = replace(about, penalty=penalty, penalty_at=moment)
    return score_of(about, RULE, at(now_s))


@pytest.mark.parametrize(
    ("failure", "score"),
    [
        pytest.param(verdict(CheckLevel.L1), 95, id="l1"),
        pytest.param(verdict(CheckLevel.L3), 85, id="l3"),
        pytest.param(verdict(CheckLevel.L5), 80, id="l5"),
        pytest.param(hard(), 60, id="hard"),
    ],
)
def test_a_failure_costs_points_by_gate(failure: Verdict, score: float) -> None:
    """Graver gates weigh more."""
    assert after(failure) == pytest.approx(score)


def test_a_plugged_in_gate_costs_what_the_rules_say() -> None:
    """Nothing where they do not name it, hard or not."""
    plugged = verdict(CheckLevel.PLUGIN)
    assert points_for(plugged, RULE) == 0
    assert points_for(verdict(CheckLevel.PLUGIN, hard=True), RULE) == 0
    named = RULE.model_copy(update={"points": {CheckLevel.PLUGIN: 3.0}})
    assert points_for(plugged, named) == 3
    assert points_for(verdict(CheckLevel.PLUGIN, hard=True), named) == 40


@given(st.lists(st.integers(-600, 0), min_size=1, max_size=8))
def test_copies_cost_as_much_as_the_latest_of_them(moments: list[int]) -> None:
    """In any order: the latest failure stands for all of its prompt."""
    about, copied_at = record(penalty_at=at(-600)), None
    for second in moments:
        if copied_at is None or at(second) > copied_at:
            one = verdict(timestamp=at(second))
            penalty, moment = penalised(about, one, at(second), RULE, copied_at)
            about = replace(about, penalty=penalty, penalty_at=moment)
            copied_at = at(second)
    assert score_of(about, RULE, NOW) == pytest.approx(after(verdict(timestamp=at(max(moments)))))


def test_half_is_healed_after_the_half_life() -> None:
    """Time heals."""
    assert after(hard(), now_s=RULE.half_life_s) == pytest.approx(80)


def test_the_score_never_leaves_its_range() -> None:
    """However many failures, 0 is the end."""
    assert after(*[hard()] * 50) == 0


def test_a_clock_set_back_changes_nothing() -> None:
    """The score of an earlier moment is that of the last failure."""
    assert faded(30, -1e9, 1) == 30


def test_five_soft_failures_leave_a_readmitted_instance_trusted() -> None:
    """Five failures do nothing, right after a return too."""
    back = record(penalty=100 - RULE.readmit_score)
    for _ in range(5):
        penalty, _moment = penalised(back, verdict(), NOW, RULE)
        back = replace(back, penalty=penalty)
    assert score_of(back, RULE, NOW) > RULE.suspect_below


MOMENTS = st.lists(st.integers(-600, 0), min_size=1, max_size=8)


@given(MOMENTS.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_order_changes_nothing(moments: tuple[list[int], list[int]]) -> None:
    """The same failures in any order give the same score."""
    one, other = (after(*[verdict(timestamp=at(s)) for s in order]) for order in moments)
    assert one == pytest.approx(other)


@pytest.mark.parametrize(
    ("penalty", "weight"),
    [(0, 1.0), (0.1, 1.0), (10, 0.9), (15, 0.9), (55, 0.5), (99, 0.1), (500, 0.1)],
)
def test_the_weight_follows_the_score_down_to_a_floor(penalty: float, weight: float) -> None:
    """A doubted instance gets less, never nothing."""
    assert weight_of(record(penalty=penalty), POLICY, NOW) == weight


@pytest.mark.parametrize("state", [s for s in InstanceState if s not in ("healthy", "suspect")])
def test_outside_rotation_the_weight_is_zero(state: InstanceState) -> None:
    """No other state gets requests of clients."""
    assert weight_of(record(state), POLICY, NOW) == 0


@pytest.mark.parametrize(
    ("after_s", "penalty", "weight"),
    [
        pytest.param(0, 0, 0.3, id="at-once"),
        pytest.param(16, 0, 0.7, id="half-way"),
        pytest.param(29.9, 0, 1.0, id="nearly-there"),
        pytest.param(30, 0, 1.0, id="there"),
        pytest.param(0, 80, 0.2, id="the-score-gives-less"),
        pytest.param(-1, 0, 1.0, id="a-clock-that-was-set-back"),
    ],
)
def test_the_weight_rises_after_a_return(after_s: float, penalty: float, weight: float) -> None:
    """From the first weight to the score's, never above it."""
    about = record(readmitted_at=NOW, penalty=penalty, penalty_at=at(after_s))
    assert weight_of(about, POLICY, at(after_s)) == weight


def test_slow_start_can_be_switched_off() -> None:
    """No ramp, no first weight."""
    policy = in_pool(slow_start={"ramp_s": 0.0})
    assert weight_of(record(readmitted_at=NOW), policy, NOW) == 1
    assert weight_of(record(), POLICY, NOW) == 1


def test_the_ramp_only_rises_and_in_tenths() -> None:
    """So an instance that comes back publishes few routing tables."""
    about = record(readmitted_at=NOW)
    weights = [weight_of(about, POLICY, at(second)) for second in range(40)]
    assert weights == sorted(weights)
    assert set(weights) == {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}


@pytest.mark.parametrize(
    ("ceiling", "weight"), [(None, 1.0), (1.0, 1.0), (0.25, 0.25), (0.05, 0.05), (0.0, 0.0)]
)
def test_an_operators_ceiling_goes_before_the_floor(ceiling: float | None, weight: float) -> None:
    """It is what a person asked for; 0 keeps every request away."""
    assert weight_of(record(weight_ceiling=ceiling), POLICY, NOW) == weight
    assert weight_of(record(InstanceState.DRAINING, weight_ceiling=ceiling), POLICY, NOW) == 0.0
