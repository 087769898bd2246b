"""Each condition at its limit and one past it."""

from typing import Any

import pytest

from gatemesh_common.messages import CheckLevel
from gatemesh_health_manager.conditions import broken_condition
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.record import Condition

from .samples import POLICY, hard, in_pool, verdict


@pytest.mark.parametrize(
    ("facts", "level", "broken"),
    [
        pytest.param(Facts(5, 5), CheckLevel.L1, None, id="five"),
        pytest.param(Facts(6, 6), CheckLevel.L1, Condition.A, id="six"),
        pytest.param(Facts(6, 6), CheckLevel.L2, Condition.A, id="six-of-l2"),
        pytest.param(Facts(6, 2), CheckLevel.L1, None, id="two-prompts"),
        pytest.param(Facts(6, 3), CheckLevel.L1, Condition.A, id="three-prompts"),
        pytest.param(Facts(6, 6), CheckLevel.L3, None, id="soft-l3-is-no-business-of-a"),
    ],
)
def test_condition_a(facts: Facts, level: CheckLevel, broken: Condition | None) -> None:
    """More than 5 failures from at least 3 prompts."""
    assert broken_condition(verdict(level), facts, POLICY) is broken


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        pytest.param({"hard": True}, Condition.B, id="hard"),
        pytest.param({"hard": False}, None, id="soft"),
        pytest.param({"hard": True, "outcome": "skipped"}, None, id="skipped"),
        pytest.param({"hard": True, "outcome": "passed"}, None, id="passed"),
    ],
)
def test_condition_b(fields: dict[str, Any], broken: Condition | None) -> None:
    """One hard L3 failure."""
    assert broken_condition(verdict(CheckLevel.L3, **fields), NO_FACTS, POLICY) is broken


def test_the_graver_condition_wins() -> None:
    """Proof goes before evidence."""
    rules = in_pool(condition_a={"levels": frozenset({CheckLevel.L3})})
    assert broken_condition(hard(), Facts(6, 6), rules) is Condition.B


def test_conditions_can_be_switched_off() -> None:
    """A pool may do without one."""
    off = in_pool(condition_a={"enabled": False}, condition_b={"enabled": False})
    assert broken_condition(hard(), NO_FACTS, off) is None
    assert broken_condition(verdict(), Facts(6, 6), off) is None
