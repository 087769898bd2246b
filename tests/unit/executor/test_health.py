"""Looking at an engine's `/health`; the looks themselves are tested on real sockets."""

import pytest

from gatemesh_executor.health import Health, HttpHealth


async def test_it_is_used_inside_its_context() -> None:
    """A connection pool that nobody closes would leak."""
    with pytest.raises(RuntimeError, match="context"):
        await HttpHealth().look("http://engine-0:8000")


def test_its_answers_are_a_closed_list() -> None:
    """Steps tell refused from not ready."""
    assert set(Health) == {Health.READY, Health.NOT_READY, Health.REFUSED}
