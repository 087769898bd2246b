"""Requests under way are counted, however they end."""

from random import Random

import pytest

from gatemesh_agent.routing import Router
from gatemesh_agent.under_way import under_way


def test_a_request_counts_while_it_runs() -> None:
    """And no longer."""
    router = Router(Random(1))
    with under_way(router, "e"), under_way(router, "e"):
        assert router.in_flight["e"] == 2
    assert router.in_flight["e"] == 0


def test_a_request_that_fails_is_counted_out() -> None:
    """Otherwise the instance would look busy for ever."""
    router = Router(Random(1))
    with pytest.raises(KeyError), under_way(router, "e"):
        raise KeyError
    assert router.in_flight["e"] == 0
