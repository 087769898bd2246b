"""A case begins with nothing tried."""

from unittest.mock import Mock

from tests.unit.agent.rescue.streams import FakeClient

from gatemesh_agent.cases import Attempt, Case, EngineError
from gatemesh_agent.reporting import Life
from gatemesh_agent.wishes import Wish


def test_an_exchange_follows_once_an_instance_failed_the_request() -> None:
    """And says how many figures were added."""
    case = Case(Mock(), Mock(), 0.0)
    attempt = Attempt(case, Mock(), Mock(), Wish(20), Mock())
    first = attempt.exchange(streamed=True, retried=False)
    assert (first.follows, first.wished, first.streamed) == (False, 20, True)
    case.key = "k"
    assert attempt.exchange(streamed=False, retried=True).follows


async def test_an_engines_error_is_given_as_it_came() -> None:
    """To whoever asked, with the instance that said it."""
    life, client = Life("a", 0, None, numbered=True), FakeClient()
    error = EngineError(life, "busy", 503, "Busy", {"Retry-After": "7"}, b"full", 4)
    await error.give(client)  # type: ignore[arg-type]
    assert (client.status, client.instance_id, client.sent) == (503, "a", b"full")
    assert client.ended
