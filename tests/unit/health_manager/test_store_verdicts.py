"""How far windows reach; the reading is tested on a real database."""

from gatemesh_health_manager.batch import Counting
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.store_verdicts import window_query

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
