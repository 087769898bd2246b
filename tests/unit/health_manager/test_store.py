"""What the store promises by its shape; what it does is tested on a real database."""

from gatemesh_common.messages import Action, ReportOutcome
from gatemesh_health_manager.store import is_of_an_order

from .samples import report, seen


def test_a_forgery_is_of_no_order() -> None:
    """Its report would end the command whose id it bears, or make an instance of a name."""
    assert is_of_an_order(report(Action.DRAIN))
    assert is_of_an_order(report(Action.DRAIN, ReportOutcome.REFUSED, reason="expired"))
    assert is_of_an_order(seen())
    assert not is_of_an_order(report(Action.DRAIN, ReportOutcome.REFUSED, ends_command=False))
