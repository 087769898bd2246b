"""A case begins with nothing tried."""

from unittest.mock import Mock

from gatemesh_agent.cases import Attempt, Case
from gatemesh_agent.wishes import Wish


def test_an_exchange_follows_once_an_instance_failed_the_request() -> None:
    """And says how many figures were added."""
    case = Case(Mock(), Mock(), 0.0)
    attempt = Attempt(case, Mock(), Mock(), Wish(20), Mock())
    first = attempt.exchange(streamed=True, retried=False)
    assert (first.follows, first.wished, first.streamed) == (False, 20, True)
    case.key = "k"
    assert attempt.exchange(streamed=False, retried=True).follows
