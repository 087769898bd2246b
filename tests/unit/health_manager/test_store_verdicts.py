"""How far windows reach; the reading is tested on a real database."""

from datetime import UTC, datetime, timedelta

from gatemesh_common.messages import CheckLevel
from gatemesh_health_manager.batch import Counting
from gatemesh_health_manager.facts import Failure
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.own_conditions import OwnCondition
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.score import penalised
from gatemesh_health_manager.store_verdicts import (
    copies_matter_from,
    fresh_failures,
    window_query,
)

from .samples import NOW, POLICY, at, record, verdict

RULE = POLICY.condition_a


def fleet(about: InstanceRecord) -> Fleet:
    """Return a pool of one instance."""
    return Fleet(Policy(), [PoolRecord("default")], [about])


def test_a_window_reaches_as_far_as_its_verdicts_need() -> None:
    """A minute before the first and after the last, and not into answered evidence."""
    fresh = [verdict(timestamp=at(s)) for s in (-100, -70)]
    query = window_query(Counting(RULE, fresh), fleet(record()), NOW)
    assert (query["since"], query["until"]) == ([at(-160)], [at(-10)])
    answered = fleet(record(evidence_since=at(-120)))
    assert window_query(Counting(RULE, fresh), answered, NOW)["since"] > [at(-120)]


def test_a_window_is_looked_for_in_no_day_before_it() -> None:
    """What was received earlier was counted earlier."""
    fresh = [verdict(timestamp=at(s)) for s in (-100, -70)]
    query = window_query(Counting(RULE, fresh), fleet(record()), NOW)
    assert query["received_since"] == at(-160)


def test_fresh_failures_are_worded_as_the_table_words_them() -> None:
    """A prompt that Postgres cannot hold is the same one, read or at hand."""
    rule = OwnCondition(name="own_one", levels=frozenset({CheckLevel.L1}), min_tenants=2)
    odd = verdict(timestamp=at(-9), prompt_fingerprint="p\x00", tenant="t\x00")
    found = fresh_failures(Counting(rule, [odd]), fleet(record()), NOW)
    assert found == {"engine-0": [Failure(at(-9), "p\ufffd", fresh=True, tenant="t\ufffd")]}
    [without] = fresh_failures(Counting(RULE, [odd]), fleet(record()), NOW)["engine-0"]
    assert without.tenant == ""


def test_what_is_answered_is_not_fresh() -> None:
    """Not even where the clock was set back since."""
    ahead = [verdict(timestamp=NOW + timedelta(hours=2))]
    answered = fleet(record(evidence_since=NOW + timedelta(hours=1)))
    assert fresh_failures(Counting(RULE, ahead), answered, NOW) == {}
    before = fleet(record(evidence_since=at(-1)))
    [failure] = fresh_failures(Counting(RULE, ahead), before, NOW)["engine-0"]
    assert failure.at == NOW


def test_copies_before_are_lost_in_rounding() -> None:
    """Bit for bit, whatever a failure costs: leaving them out changes no decision."""
    failed = verdict(timestamp=at(-10))
    earliest = copies_matter_from(fleet(record()), [failed, verdict()], NOW)
    for points in (1.0, 8.0, 10.0, 33.3, 64.0, 100.0):
        rules = POLICY.score.model_copy(update={"points": {CheckLevel.L1: points}})
        alone = penalised(record(), failed, at(-10), rules)
        assert penalised(record(), failed, at(-10), rules, earliest) == alone


def test_a_failure_of_the_dawn_of_time_is_looked_for() -> None:
    """A clock at its beginning ends no manager."""
    early = verdict(timestamp=datetime(1, 1, 3, tzinfo=UTC))
    assert copies_matter_from(fleet(record()), [early], NOW) <= early.timestamp
