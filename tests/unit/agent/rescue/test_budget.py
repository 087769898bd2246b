"""A storm of rescues is braked, and one tenant does not take all."""

from gatemesh_agent.rescue.budget import RescueBudget
from gatemesh_agent.rescue.refusals import Refusal


def test_no_more_in_a_minute_than_may_be() -> None:
    """After it there is room again."""
    budget = RescueBudget(2, 1.0)
    assert [budget.take(None, 0.0) for _ in range(3)] == [None, None, Refusal.BUDGET]
    assert budget.take(None, 59.9) is Refusal.BUDGET
    assert budget.take(None, 60.0) is None


def test_one_tenant_takes_its_share_only() -> None:
    """The others still find room; those without a name are not told apart."""
    budget = RescueBudget(4, 0.5)
    assert [budget.take("x", 0.0) for _ in range(3)] == [None, None, Refusal.TENANT_BUDGET]
    assert budget.take("y", 0.0) is None
    assert budget.take(None, 0.0) is None
    assert budget.take("z", 0.0) is Refusal.BUDGET
    assert budget.take("x", 61.0) is None


def test_a_budget_of_nothing_lets_nobody_in() -> None:
    """Rescue is off then, but for the hold."""
    assert RescueBudget(0, 1.0).take("x", 0.0) is Refusal.BUDGET
