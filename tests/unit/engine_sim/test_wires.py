"""Every route has a wire."""

from collections.abc import Callable

import pytest

from gatemesh_engine_sim.intake import Asked, Route
from gatemesh_engine_sim.wire import Reply
from gatemesh_engine_sim.wires import WIRES, wire_for


@pytest.mark.parametrize("route", list(Route))
def test_every_route_has_its_own(ask: Callable[..., Asked], route: Route) -> None:
    """A new one for each answer."""
    reply = Reply("R", 5, ask(route, input="Hi"))
    assert type(wire_for(reply)) is WIRES[route]
    assert wire_for(reply) is not wire_for(reply)
