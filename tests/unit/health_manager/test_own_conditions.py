"""Conditions that the rules define: what counts, what they do, how they are told."""

from dataclasses import replace
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
from gatemesh_health_manager.own_conditions import OwnCondition, kind_of
from gatemesh_health_manager.policy import Policy, PolicyError, PoolPolicy, parse_policy
from gatemesh_health_manager.record import Condition, Decision
from gatemesh_health_manager.store_rows import (
    incident_row,
    instance_row,
    read_incident,
    read_instance,
)
from gatemesh_health_manager.streaks import NO_STREAKS

from .samples import NOW, at, case, in_pool, record, verdict

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


def is_broken(facts: Facts, policy: PoolPolicy) -> bool:
    """Tell whether a failure of a plugged-in gate breaks an own condition."""
    return broken_own(verdict(CheckLevel.PLUGIN), NOW, facts, NO_STREAKS, policy) is not None


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
    assert is_broken(facts, rules()) is broken


def test_tenants_may_have_to_be_several() -> None:
    """One tenant's odd taste takes nothing out."""
    policy = PoolPolicy(own_conditions=(own(min_tenants=2),))
    assert not is_broken(known(9, 9, 1), policy)
    assert is_broken(known(1, 1, 2), policy)


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
    assert incident.playbook == playbook
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


ROW = """
[[defaults.own_conditions]]
name = "odd_row"
kind = "consecutive"
levels = ["L4"]
reasons = ["answers_differ"]
consecutive = 2
min_prompts = 2
"""


def in_a_row(*outcomes: tuple[str, str, str]) -> Decision:
    """Return the last decision after verdicts of the shadow, each with prompt and reason."""
    about, policy = record(), parse_policy(ROW).defaults
    policy = policy.model_copy(update=quiet())
    for number, (outcome, prompt, reason) in enumerate(outcomes, start=1):
        one = case(about, policy=policy, after_s=number)
        given = verdict(
            CheckLevel.L4,
            timestamp=at(number),
            outcome=outcome,
            prompt_fingerprint=prompt,
            reason=reason,
        )
        on_verdict(one, given, NO_FACTS)
        about = one.decision().record
    return one.decision()


def quiet() -> dict[str, Any]:
    """Return what keeps condition C out of the way."""
    return {"condition_c": in_pool(condition_c={"enabled": False}).condition_c}


A, B, OTHER = (
    ("failed", "p1", "answers_differ"),
    ("failed", "p2", "answers_differ"),
    ("failed", "p2", "facts_differ"),
)
PASS = ("passed", "p3", "clean")


@pytest.mark.parametrize(
    ("outcomes", "broken"),
    [
        pytest.param((A, B), True, id="in-a-row"),
        pytest.param((A, A), False, id="one-prompt"),
        pytest.param((A, PASS, B), False, id="a-pass-between"),
        pytest.param((A, OTHER, B), True, id="another-reason-ends-no-row"),
        pytest.param((A, OTHER), False, id="another-reason-does-not-count"),
    ],
)
def test_failures_in_a_row(outcomes: Any, broken: bool) -> None:  # noqa: FBT001
    """Only a pass of the same gates ends a row."""
    decision = in_a_row(*outcomes)
    assert bool(decision.incidents) is broken
    if broken:
        [incident] = decision.incidents
        assert incident.name == "odd_row"
        assert incident.cause.startswith("2 failures in a row of 2 prompts, last: ")


def test_a_row_is_stored_with_the_instance() -> None:
    """Neither a restart of the manager nor another batch begins it anew."""
    about = in_a_row(A).record
    assert about.streaks.of("odd_row").length == 1
    row: Any = instance_row(about)
    assert read_instance(row, None) == about


def test_a_pass_ends_what_a_held_row_has_against_the_instance() -> None:
    """As it does for condition C."""
    policy = parse_policy(ROW + '[defaults]\nmode = "observe"\n').defaults
    about = in_a_row(A, B).record
    held = replace(about, state=InstanceState.HEALTHY, weight=1.0, wanted=None, flight=None)
    incident = held.incident
    assert incident is not None
    held = replace(held, incident=replace(incident, status="held"))
    one = case(held, policy=policy, after_s=9)
    on_verdict(one, verdict(CheckLevel.L4, outcome="passed", timestamp=at(9)), NO_FACTS)
    assert [each.status for each in one.decision().incidents] == ["resolved"]


KIND = '[[defaults.own_conditions]]\nname = "mine"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            'kind = "sum"', "line 1: defaults.own_conditions.0: kind: must be one of", id="kind"
        ),
        pytest.param(
            'kind = "rate"\nof = "server_errors"\nmore_than = 0.1\nwindow = 3',
            "line 6: defaults.own_conditions.0.window: Extra",
            id="key-of-a-kind",
        ),
        pytest.param(
            'kind = "rate"\nof = "speed"', "line 4: defaults.own_conditions.0.of", id="of-what"
        ),
        pytest.param(
            'kind = "rate"\nof = "server_errors"',
            "line 1: defaults.own_conditions.0: more_than: needs a share",
            id="no-limit",
        ),
        pytest.param(
            'kind = "rate"\nof = "tokens_per_s"\nmore_than = 0.5',
            "line 1: defaults.own_conditions.0: times_pool: tokens_per_s",
            id="share-of-a-speed",
        ),
        pytest.param(
            'kind = "rate"\nof = "unguarded"\nmore_than = 0.5\nlevels = ["L1"]',
            "line 1: defaults.own_conditions.0: levels: say which",
            id="idle-levels",
        ),
        pytest.param(
            'kind = "consecutive"\nlevels = ["L1", "L4"]\nconsecutive = 2',
            "line 4: defaults.own_conditions.0.levels: passes of L1 are not told",
            id="gate-without-passes",
        ),
        pytest.param(
            'kind = "consecutive"\nlevels = ["L4"]\nconsecutive = 11',
            "line 5: defaults.own_conditions.0.consecutive",
            id="a-row-longer-than-what-is-kept",
        ),
        pytest.param(
            'kind = "slo_burn"\nfast_s = 600\nslow_s = 600',
            "line 1: defaults.own_conditions.0: slow_s: must be longer",
            id="windows",
        ),
        pytest.param(
            'kind = "slo_burn"\nobjective = 0.9\nburn_more_than = 10',
            "line 1: defaults.own_conditions.0: burn_more_than: can never",
            id="impossible-burn",
        ),
        pytest.param(
            'kind = "slo_burn"\nbad = ["server_errors"]\nreasons = ["empty"]',
            "line 1: defaults.own_conditions.0: levels: say which",
            id="idle-reasons",
        ),
    ],
)
def test_faults_name_line_and_key(text: str, told: str) -> None:
    """Whoever made one finds it."""
    with pytest.raises(PolicyError) as raised:
        parse_policy(KIND + text)
    assert told in str(raised.value)


def test_a_condition_without_a_kind_counts() -> None:
    """As all did before there were kinds."""
    [rule] = parse_policy(KIND + 'levels = ["L1"]').defaults.own_conditions
    assert isinstance(rule, OwnCondition)
    assert (kind_of(rule), rule.kind) == ("count", "count")


def test_histories_with_own_conditions_replay() -> None:
    """Windows of several conditions are counted as the manager counts them."""
    text = '[[defaults.own_conditions]]\nname = "two"\nlevels = ["L1", "L4"]\nmore_than = 1\n'
    pool = MadeUpPool(("engine-0", "engine-1", "engine-2"), parse_policy(text), seed=2)
    pool.live(200, 10)
    assert repeat(pool.recorder.history(), DAWN).differences == []
    names = {step.trigger for step in pool.recorder.steps}
    assert "condemned" in names
