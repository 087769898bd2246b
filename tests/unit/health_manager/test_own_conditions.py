"""Conditions that the rules define: what counts, what they do, how they are told."""

from typing import Any

import pytest
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_common.messages import Action, CheckLevel, InstanceState, Verdict
from gatemesh_health_manager.batch import counted, gathered
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.conditions import broken_own, counts_for
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.on_verdict import on_verdict
from gatemesh_health_manager.policy import OwnCondition, Policy, PoolPolicy, parse_policy
from gatemesh_health_manager.record import Condition, Decision, Playbook
from gatemesh_health_manager.store_rows import incident_row, read_incident

from .samples import case, record, verdict

PATIENT = """
[[defaults.own_conditions]]
name = "odd_words"
levels = ["LX"]
more_than = 2
min_prompts = 2
window_s = 30
playbook = "{playbook}"
"""


def own(**fields: Any) -> OwnCondition:
    """Return a condition about plugged-in gates."""
    return OwnCondition.model_validate({"name": "odd_words", "levels": ["LX"], **fields})


def rules(playbook: str = "restart") -> PoolPolicy:
    """Return rules with one own condition."""
    return parse_policy(PATIENT.format(playbook=playbook)).defaults


def decided(facts: Facts, policy: PoolPolicy, given: Verdict | None = None) -> Decision:
    """Return the decision about a failure of a plugged-in gate."""
    one = case(record(), policy=policy)
    on_verdict(one, given or verdict(CheckLevel.PLUGIN), facts)
    return one.decision()


def known(failures: int, prompts: int, tenants: int = 1) -> Facts:
    """Return what is known of the own condition."""
    return Facts(own=(("odd_words", Facts(failures, prompts, tenants)),))


@pytest.mark.parametrize(
    ("rule", "given", "counts"),
    [
        pytest.param(own(), verdict(CheckLevel.PLUGIN), True, id="its-gate"),
        pytest.param(own(), verdict(CheckLevel.L1), False, id="another-gate"),
        pytest.param(own(reasons=["empty"]), verdict(CheckLevel.PLUGIN), False, id="reason"),
        pytest.param(
            own(reasons=["empty"]),
            verdict(CheckLevel.PLUGIN, reason="empty"),
            True,
            id="its-reason",
        ),
        pytest.param(own(hard=True), verdict(CheckLevel.PLUGIN), False, id="proofs-only"),
        pytest.param(own(hard=True), verdict(CheckLevel.PLUGIN, hard=True), True, id="proof"),
        pytest.param(own(hard=False), verdict(CheckLevel.PLUGIN, hard=True), False, id="soft-only"),
    ],
)
def test_what_counts(rule: OwnCondition, given: Verdict, counts: bool) -> None:  # noqa: FBT001
    """Gates, reasons and proof are what the rule says."""
    assert counts_for(given, rule) is counts


@pytest.mark.parametrize(
    ("facts", "broken"),
    [
        pytest.param(known(3, 2), True, id="enough"),
        pytest.param(known(2, 2), False, id="tolerated"),
        pytest.param(known(9, 1), False, id="one-prompt"),
        pytest.param(NO_FACTS, False, id="nothing-known"),
    ],
)
def test_when_it_is_broken(facts: Facts, broken: bool) -> None:  # noqa: FBT001
    """More failures than tolerated, of enough prompts."""
    assert (broken_own(verdict(CheckLevel.PLUGIN), facts, rules()) is not None) is broken


def test_tenants_may_have_to_be_several() -> None:
    """One tenant's odd taste takes nothing out."""
    policy = PoolPolicy(own_conditions=(own(min_tenants=2),))
    assert broken_own(verdict(CheckLevel.PLUGIN), known(9, 9, 1), policy) is None
    assert broken_own(verdict(CheckLevel.PLUGIN), known(1, 1, 2), policy) is not None


@pytest.mark.parametrize(
    ("playbook", "state", "action"),
    [
        ("restart", InstanceState.DRAINING, Action.DRAIN),
        ("stop", InstanceState.DRAINING, Action.DRAIN),
        ("replace", InstanceState.EJECTED, Action.EJECT),
    ],
)
def test_each_playbook_begins(playbook: str, state: InstanceState, action: Action) -> None:
    """And the incident is told by the name that the rules give."""
    found = decided(known(3, 2), rules(playbook))
    [incident] = found.incidents
    assert (incident.name, incident.condition) == ("odd_words", Condition.OWN)
    assert incident.playbook is Playbook(playbook)
    assert incident.cause == "3 failures of 2 prompts, last: reported"
    assert found.record.state is state
    assert [order.command.action for order in found.commands] == [action]


def test_the_conditions_of_the_house_go_first() -> None:
    """A proof stays a proof, whatever own conditions say."""
    policy = PoolPolicy(own_conditions=(own(levels=["L3"]),))
    facts = Facts(own=(("odd_words", Facts(9, 9)),))
    proof = verdict(CheckLevel.L3, hard=True, reason="nan_logits")
    assert decided(facts, policy, proof).incidents[0].condition is Condition.B


def test_each_condition_counts_its_own_failures() -> None:
    """One batch, two windows; facts come together by instance."""
    pool = Fleet(
        Policy(defaults=PoolPolicy(own_conditions=(own(), own(name="l1_too", levels=["L1"])))),
        [PoolRecord("default")],
        [record()],
    )
    given = [verdict(), verdict(CheckLevel.PLUGIN), verdict(outcome="passed")]
    found = {one.name: len(one.verdicts) for one in counted(pool.policy, pool, given)}
    assert found == {"": 1, "l1_too": 1, "odd_words": 1}
    sizes = {"": 7, "l1_too": 2, "odd_words": 3}
    by_rule = [
        (one, {"engine-0": Facts(sizes[one.name], 1)}) for one in counted(pool.policy, pool, given)
    ]
    facts = gathered(by_rule)["engine-0"]
    assert facts.failures == sizes[""]
    assert {name: each.failures for name, each in facts.own} == {"l1_too": 2, "odd_words": 3}


def test_an_incident_is_stored_by_its_name() -> None:
    """And read again as what it is."""
    [incident] = decided(known(3, 2), rules()).incidents
    row = incident_row(incident, record(), "v")
    assert row["condition"] == "odd_words"
    again: Any = row
    assert read_incident(again) == incident


def test_histories_with_own_conditions_replay() -> None:
    """Windows of several conditions are counted as the manager counts them."""
    text = '[[defaults.own_conditions]]\nname = "two"\nlevels = ["L1", "L4"]\nmore_than = 1\n'
    pool = MadeUpPool(("engine-0", "engine-1", "engine-2"), parse_policy(text), seed=2)
    pool.live(200, 10)
    assert repeat(pool.recorder.history(), DAWN).differences == []
    names = {step.trigger for step in pool.recorder.steps}
    assert "condemned" in names
