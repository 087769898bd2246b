"""Rates beside the pool, budgets that burn, and what they do to an instance."""

from typing import Any

import pytest
from benchmarks.recorded import DAWN, MadeUpPool, Recorder

from gatemesh_common.delays import end_of
from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.assess import assess
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.facts import NO_FACTS
from gatemesh_health_manager.measuring import (
    Measure,
    Traffic,
    breaks_measure,
    burns,
    rate_of,
    rates,
    said_of,
)
from gatemesh_health_manager.own_conditions import BurnCondition, RateCondition
from gatemesh_health_manager.policy import parse_policy
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord, Tick

from .samples import NOW, ROOM, record

RULES = """
[[defaults.own_conditions]]
name = "errors"
kind = "rate"
of = "server_errors"
more_than = 0.1
"""


def rate(**fields: Any) -> RateCondition:
    """Return a rule about server errors."""
    known = {"name": "mine", "kind": "rate", "of": "server_errors", "more_than": 0.1}
    return RateCondition.model_validate(known | fields)


def slow(**fields: Any) -> RateCondition:
    """Return a rule about speed."""
    known = {"name": "slow", "kind": "rate", "of": "tokens_per_s", "times_pool": 2}
    return RateCondition.model_validate(known | fields)


def late(**fields: Any) -> RateCondition:
    """Return a rule about first tokens."""
    known = {"name": "late", "kind": "rate", "of": "first_token_p95", "times_pool": 3}
    return RateCondition.model_validate(known | fields)


def burn(**fields: Any) -> BurnCondition:
    """Return a rule with an objective of 99 of 100 good answers."""
    return BurnCondition.model_validate({"name": "slo", "kind": "slo_burn"} | fields)


@pytest.mark.parametrize(
    ("rule", "traffic", "found"),
    [
        (rate(), Traffic(40, server_errors=10), 0.25),
        (rate(of="failures"), Traffic(40, failures=4), 0.1),
        (rate(of="failures"), Traffic(4, failures=8), 1.0),
        (rate(of="unguarded"), Traffic(40, unguarded=40), 1.0),
        (slow(), Traffic(40, tokens=900, busy_s=30.0), 30.0),
        (slow(), Traffic(40, tokens=900), None),
        (late(), Traffic(40, first_tokens={26: 19, 39: 1}), end_of(26)),
        (late(), Traffic(40, first_tokens={26: 18, 39: 2}), end_of(39)),
        (late(), Traffic(40), None),
    ],
)
def test_rates(rule: RateCondition, traffic: Traffic, found: float | None) -> None:
    """Shares of the answers; speed of one running request, unknown where none was seen."""
    assert rate_of(rule, traffic) == found


def test_too_few_answers_say_nothing() -> None:
    """One failed answer of one is no rate; exactly enough are."""
    pool = {"a": Traffic(19, server_errors=19), "b": Traffic(20, server_errors=20)}
    assert rates(rate(), pool) == {"b": Measure(20, 1.0)}


def test_delays_are_counted_over_streams() -> None:
    """Answers that came whole say nothing of first tokens."""
    pool = {"a": Traffic(400, first_tokens={26: 20}), "b": Traffic(400, first_tokens={26: 19})}
    assert rates(late(), pool) == {"a": Measure(20, end_of(26))}


def test_an_instance_is_not_its_own_baseline() -> None:
    """The median is that of the others, and two of them at least."""
    pool = {
        name: Traffic(20, server_errors=errors)
        for name, errors in zip("abc", (0, 2, 20), strict=True)
    }
    found = rates(rate(), pool)
    assert (found["c"].value, found["c"].others) == (1.0, 0.05)
    assert rates(rate(), {name: pool[name] for name in "ab"})["a"].others is None


@pytest.mark.parametrize(
    ("measure", "rule", "broken"),
    [
        pytest.param(Measure(20, 0.1), rate(), False, id="at-the-share"),
        pytest.param(Measure(20, 0.11), rate(), True, id="above-the-share"),
        pytest.param(Measure(20, 0.2, 0.1), rate(times_pool=2), False, id="at-the-factor"),
        pytest.param(Measure(20, 0.3, 0.1), rate(times_pool=2), True, id="worse-than-others"),
        pytest.param(Measure(20, 0.9), rate(times_pool=2), False, id="no-others"),
        pytest.param(Measure(20, 0.9, 0.9), rate(times_pool=2), False, id="all-alike"),
        pytest.param(Measure(20, 20.0, 40.0), slow(), False, id="half-as-fast"),
        pytest.param(Measure(20, 19.0, 40.0), slow(), True, id="slower"),
        pytest.param(Measure(20, 3.0, 1.0), late(), False, id="three-times-as-late"),
        pytest.param(Measure(20, 3.1, 1.0), late(), True, id="later"),
        pytest.param(Measure(20, 14.4, slow=20.0), burn(), False, id="at-the-burn"),
        pytest.param(Measure(20, 14.5, slow=14.5), burn(), True, id="both-windows"),
        pytest.param(Measure(20, 50.0, slow=2.0), burn(), False, id="only-fast"),
        pytest.param(Measure(20, 2.0, slow=50.0), burn(), False, id="only-slow"),
    ],
)
def test_when_a_measure_breaks_its_rule(measure: Measure, rule: Any, broken: bool) -> None:  # noqa: FBT001
    """At the limit it holds, past it it does not."""
    assert breaks_measure(measure, rule) is broken


def test_a_budget_burns_by_what_its_rule_calls_bad() -> None:
    """20 bad of 100 with one of 100 allowed burn 20 times too fast."""
    fast = {"a": Traffic(100, server_errors=10, failures=10), "b": Traffic(3, failures=3)}
    long = {"a": Traffic(1000, failures=10)}
    [(name, found)] = burns(burn(), fast, long).items()
    assert (name, found.answers) == ("a", 100)
    assert [found.value, found.slow] == pytest.approx([20, 1])
    only = burns(burn(bad=["server_errors"]), fast, long)["a"]
    assert [only.value, only.slow] == pytest.approx([10, 0])


def test_what_broke_a_rule_is_told() -> None:
    """With the figures that it went by."""
    assert said_of(Measure(40, 0.25), rate()) == "server_errors 0.25, 40 answers"
    assert said_of(Measure(40, 12.0, 40.0), slow()) == "tokens_per_s 12, others 40, 40 answers"
    told = said_of(Measure(40, 20.0, slow=16.0), burn())
    assert told == "burn 20 in 300 s and 16 in 3600 s, objective 0.99"


def looked(about: InstanceRecord, *measures: tuple[str, Measure]) -> Decision:
    """Return what a tick decides that goes by these measures."""
    policy = parse_policy(RULES).defaults
    return assess(about, NO_FACTS, Tick("t", 0, measures), ROOM, policy=policy, now=NOW)


def test_a_broken_rate_accuses() -> None:
    """By the name of the rule, and its playbook follows."""
    decision = looked(record(), ("errors", Measure(40, 0.25)))
    [incident] = decision.incidents
    assert (incident.condition, incident.name) == (Condition.OWN, "errors")
    assert incident.cause == "server_errors 0.25, 40 answers"
    assert decision.record.state is InstanceState.DRAINING
    assert [order.command.action for order in decision.commands] == [Action.DRAIN]


def test_a_measure_of_no_rule_changes_nothing() -> None:
    """The rules have changed since, or the instance is out already."""
    assert looked(record(), ("gone", Measure(40, 0.9))).incidents == ()
    assert looked(record(), ("errors", Measure(40, 0.1))).incidents == ()
    out = record(InstanceState.PROBATION)
    assert looked(out, ("errors", Measure(40, 0.9))).incidents == ()


def test_histories_with_telemetry_replay() -> None:
    """The figures that decided are kept with the tick, and decide alike."""
    pool = MadeUpPool(("engine-0", "engine-1", "engine-2"), parse_policy(RULES), seed=3)
    pool.live(60, 10)
    recorder: Recorder = pool.recorder
    at = recorder.given[-1].input.at
    serving = [name for name, one in recorder.fleet.records.items() if one.serving]
    assert serving
    known = {name: (("errors", Measure(40, 0.25, 1 / 3)),) for name in serving}
    decisions = recorder.tick(at, known)
    assert {one.name for each in decisions for one in each.incidents} >= {"errors"}
    body = recorder.given[-1].input.body
    assert set(body["measures"]) <= set(serving)
    assert repeat(recorder.history(), DAWN).differences == []
