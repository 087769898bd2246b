"""Each condition at its limit and one past it."""

from collections.abc import Sequence
from typing import Any

import pytest

from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_health_manager.conditions import broken_condition, streaks_after
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.record import Condition
from gatemesh_health_manager.streaks import NO_STREAKS, Streaks

from .samples import POLICY, at, hard, in_pool, verdict


def broken(
    given: Verdict,
    facts: Facts = NO_FACTS,
    rules: PoolPolicy = POLICY,
    streaks: Streaks = NO_STREAKS,
) -> Condition | None:
    """Return the condition that a failure breaks."""
    return broken_condition(given, given.timestamp, facts, streaks, rules)


def after(*verdicts: Verdict, rules: PoolPolicy = POLICY) -> Streaks:
    """Return the streaks after some verdicts."""
    streaks = NO_STREAKS
    for each in verdicts:
        streaks = streaks_after(streaks, each, each.timestamp, rules)
    return streaks


def shadow(second: float, outcome: str = "failed", prompt: str | None = None) -> Verdict:
    """Return a verdict of the shadow, of a prompt of its own unless said otherwise."""
    return verdict(
        CheckLevel.L4,
        timestamp=at(second),
        outcome=outcome,
        prompt_fingerprint=prompt or f"prompt-{second}",
    )


def suite(second: float, outcome: str = "failed", **fields: Any) -> Verdict:
    """Return the result of a probe suite."""
    named = {"request_id": f"suite-{second}", "timestamp": at(second), "outcome": outcome}
    return verdict(CheckLevel.L5, **(named | fields))


@pytest.mark.parametrize(
    ("facts", "level", "wanted"),
    [
        pytest.param(Facts(5, 5), CheckLevel.L1, None, id="five"),
        pytest.param(Facts(6, 6), CheckLevel.L1, Condition.A, id="six"),
        pytest.param(Facts(6, 6), CheckLevel.L2, Condition.A, id="six-of-l2"),
        pytest.param(Facts(6, 2), CheckLevel.L1, None, id="two-prompts"),
        pytest.param(Facts(6, 3), CheckLevel.L1, Condition.A, id="three-prompts"),
        pytest.param(Facts(6, 6), CheckLevel.L3, None, id="soft-l3-is-no-business-of-a"),
    ],
)
def test_condition_a(facts: Facts, level: CheckLevel, wanted: Condition | None) -> None:
    """More than 5 failures from at least 3 prompts."""
    assert broken(verdict(level), facts) is wanted


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({"hard": True}, Condition.B, id="hard"),
        pytest.param({"hard": False}, None, id="soft"),
        pytest.param({"hard": True, "outcome": "skipped"}, None, id="skipped"),
        pytest.param({"hard": True, "outcome": "passed"}, None, id="passed"),
    ],
)
def test_condition_b(fields: dict[str, Any], wanted: Condition | None) -> None:
    """One hard L3 failure."""
    assert broken(verdict(CheckLevel.L3, **fields)) is wanted


def test_the_graver_condition_wins() -> None:
    """Proof goes before evidence."""
    rules = in_pool(condition_a={"levels": frozenset({CheckLevel.L3})})
    assert broken(hard(), Facts(6, 6), rules) is Condition.B


def test_conditions_can_be_switched_off() -> None:
    """A pool may do without one."""
    off = in_pool(condition_a={"enabled": False}, condition_b={"enabled": False})
    assert broken(hard(), NO_FACTS, off) is None
    assert broken(verdict(), Facts(6, 6), off) is None


THREE = (shadow(1), shadow(2), shadow(3))


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        pytest.param(THREE[:2], None, id="two"),
        pytest.param(THREE, Condition.C, id="three"),
        pytest.param((*THREE[:2], shadow(2.5, "passed"), shadow(3)), None, id="a-pass-between"),
        pytest.param((*THREE[:2], shadow(2.5, "skipped"), shadow(3)), Condition.C, id="a-skip"),
        pytest.param([shadow(n, prompt="same") for n in range(5)], None, id="one-prompt"),
        pytest.param([shadow(n, prompt="ab"[n % 2]) for n in range(6)], None, id="two-prompts"),
        pytest.param((shadow(4, "passed"), *THREE), None, id="all-before-a-known-pass"),
        pytest.param((*THREE[1:], shadow(0, "passed"), shadow(1)), Condition.C, id="a-late-one"),
    ],
)
def test_condition_c(verdicts: Sequence[Verdict], wanted: Condition | None) -> None:
    """Three failures of three prompts in a row, by their own moments."""
    assert broken(verdicts[-1], streaks=after(*verdicts)) is wanted


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        pytest.param([suite(1)], None, id="one"),
        pytest.param([suite(1), suite(2)], Condition.D, id="two"),
        pytest.param([suite(1), suite(1.5, "passed"), suite(2)], None, id="a-pass-between"),
        pytest.param([suite(1), suite(2, "skipped")], None, id="skipped"),
    ],
)
def test_condition_d(verdicts: Sequence[Verdict], wanted: Condition | None) -> None:
    """Two failed suites in a row."""
    assert broken(verdicts[-1], streaks=after(*verdicts)) is wanted


@pytest.mark.parametrize(
    ("faults", "wanted"),
    [
        pytest.param({"one": "nan_logits"}, Condition.B, id="nan"),
        pytest.param({"one": "no answer in time", "two": "repetition"}, None, id="soft"),
        pytest.param({"one": ["nan_logits"]}, None, id="not-a-word"),
        pytest.param("nan_logits", None, id="no-faults-by-prompt"),
    ],
)
def test_a_suite_that_holds_proof_breaks_condition_b(faults: Any, wanted: Condition | None) -> None:
    """The suite's prompts are harmless; whatever else is in the details, is not read."""
    assert broken(suite(1, details={"faults": faults})) is wanted
    assert broken(suite(1, "passed", details={"faults": faults})) is None


def test_a_streak_of_suites_goes_before_all() -> None:
    """Weights that fail twice are pulled anew, not only restarted."""
    last = suite(2, details={"faults": {"one": "nan_logits"}})
    assert broken(last, streaks=after(suite(1), last)) is Condition.D


def test_conditions_c_and_d_can_be_switched_off() -> None:
    """Evidence is kept, nothing acts."""
    off = in_pool(condition_c={"enabled": False}, condition_d={"enabled": False})
    assert broken(THREE[-1], rules=off, streaks=after(*THREE)) is None
    assert broken(suite(2), rules=off, streaks=after(suite(1), suite(2))) is None


def test_a_plugged_in_gate_counts_where_the_rules_name_it() -> None:
    """Nowhere by default."""
    plugged = [verdict(CheckLevel.PLUGIN, timestamp=at(n), request_id=f"r{n}") for n in range(3)]
    assert after(*plugged) == NO_STREAKS
    assert broken(verdict(CheckLevel.PLUGIN, hard=True), Facts(6, 6)) is None
    levels = frozenset({CheckLevel.PLUGIN})
    named = in_pool(condition_c={"levels": levels})
    assert broken(plugged[-1], rules=named, streaks=after(*plugged, rules=named)) is Condition.C
