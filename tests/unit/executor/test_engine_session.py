"""The HTTP session of what asks engines."""

import pytest

from gatemesh_executor.health import HttpHealth
from gatemesh_executor.repairing import HttpRepair


@pytest.mark.parametrize("client", [HttpHealth, HttpRepair])
async def test_used_outside_of_its_context(client: type[HttpHealth | HttpRepair]) -> None:
    """Said by name, before and after."""
    asked = client()
    with pytest.raises(RuntimeError, match=client.__name__):
        _ = asked.session
    async with asked:
        assert asked.session.timeout.total == client.deadline_s
    with pytest.raises(RuntimeError, match=client.__name__):
        _ = asked.session
