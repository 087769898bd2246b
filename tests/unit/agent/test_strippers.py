"""Each route has its own way to be cleaned."""

import pytest

from gatemesh_agent.requests import Route
from gatemesh_agent.strippers import PLAIN, RESPONSES, stripper_of


@pytest.mark.parametrize("route", list(Route))
def test_every_route_has_one(route: Route) -> None:
    """Responses carry lists, the others objects."""
    assert stripper_of(route) is (RESPONSES if route is Route.RESPONSES else PLAIN)


@pytest.mark.parametrize("data", [b'{"logprobs":{"content":[1]}}', b'{"logprobs":null}'])
def test_an_open_cut_starts_anew(data: bytes) -> None:
    """One answer never sees what another left."""
    for _ in range(2):
        cut = PLAIN.open_cut()
        assert cut.feed(data) + cut.end() == b'{"logprobs":null}'
