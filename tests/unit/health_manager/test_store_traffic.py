"""What is asked of the database about telemetry; the answers are tested with a real one."""

from datetime import timedelta

from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.own_conditions import RateCondition
from gatemesh_health_manager.policy import Policy, PoolPolicy
from gatemesh_health_manager.store_traffic import looked_at, traffic_query

from .samples import NOW, S, at, record


def rule(**fields: object) -> RateCondition:
    """Return a rule about failed answers."""
    known = {"name": "mine", "kind": "rate", "of": "failures", "more_than": 0.1}
    return RateCondition.model_validate(known | fields)


def test_what_has_been_answered_is_left_out() -> None:
    """A window begins with the last readmission, if that is later."""
    records = [record(evidence_since=at(-5)), record(instance_id="b", evidence_since=at(-500))]
    query = traffic_query(rule(), records, NOW, 60)
    assert query["names"] == ["engine-0", "b"]
    assert query["since"] == [at(-5), NOW - timedelta(seconds=60)]
    assert query["lives"] == [1, 1]


def test_suites_are_no_answers() -> None:
    """Unless a rule names gates and reasons, those of clients' answers count, for any reason."""
    query = traffic_query(rule(), [record()], NOW, 60)
    assert (query["levels"], query["reasons"]) == (["L1", "L2", "L3", "L4", "LX"], None)
    named = traffic_query(rule(levels=["L2"], reasons=["empty"]), [record()], NOW, 60)
    assert (named["levels"], named["reasons"]) == (["L2"], ["empty"])


def test_only_pools_with_such_rules_are_looked_at() -> None:
    """And of them only instances in rotation: what is out has no traffic to be judged by."""
    policy = Policy(pools={"chat": PoolPolicy(own_conditions=(rule(),))})
    records = [
        record(instance_id="a", pool="chat"),
        record(S.PROBATION, instance_id="b", pool="chat"),
        record(instance_id="c"),
    ]
    fleet = Fleet(policy, [PoolRecord("chat"), PoolRecord("default")], records)
    [(found, serving)] = looked_at(fleet)
    assert (found.name, [one.instance_id for one in serving]) == ("mine", ["a"])
