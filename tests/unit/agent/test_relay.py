"""Unguarded requests: what may be repeated elsewhere."""

from random import Random
from unittest.mock import Mock

import pytest
from multidict import CIMultiDict

from gatemesh_agent.errors import Cause, InstanceFailedError
from gatemesh_agent.relay import Passage, Relay
from gatemesh_agent.reporting import Origin
from gatemesh_agent.routing import Router
from gatemesh_agent.upstream import Order


@pytest.mark.parametrize(
    ("method", "body", "cause", "begun", "tried", "may"),
    [
        pytest.param("POST", b"x", "unreachable", False, 1, True, id="never-sent"),
        pytest.param("GET", None, "broken", False, 1, True, id="safe"),
        pytest.param("GET", b"x", "broken", False, 1, False, id="body-gone"),
        pytest.param("POST", None, "broken", False, 1, False, id="may-have-been-taken"),
        pytest.param("GET", None, "broken", True, 1, False, id="answer-begun"),
        pytest.param("GET", None, "broken", False, 3, False, id="tried-enough"),
    ],
)
def test_what_may_be_repeated(  # noqa: PLR0917
    method: str,
    body: bytes | None,
    cause: Cause,
    begun: bool,  # noqa: FBT001
    tried: int,
    may: bool,  # noqa: FBT001
) -> None:
    """Only where nothing can have happened twice."""
    relay = Relay(Router(Random(1)), Mock(), Mock(), "p", reroutes=2)
    order = Order(method, "/x", CIMultiDict(), body)
    passage = Passage(Origin("R"), order, Mock(begun=begun), unguarded=None, tried=["e"] * tried)
    assert relay._may_repeat(passage, InstanceFailedError(cause, "x")) is may
