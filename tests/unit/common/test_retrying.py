"""Retrying what passes."""

import pytest

from gatemesh_common.errors import DatabaseUnavailableError, GatemeshError
from gatemesh_common.retrying import retry_passing_faults


class Flaky:
    """Fails a few times, then works."""

    def __init__(self, error: GatemeshError, times: int) -> None:
        self.error = error
        self.left = times

    async def __call__(self) -> str:
        """Fail or work."""
        if self.left:
            self.left -= 1
            raise self.error
        return "done"


async def test_a_passing_fault_is_retried() -> None:
    """Until it has passed."""
    flaky = Flaky(DatabaseUnavailableError("away"), 3)
    assert await retry_passing_faults(flaky, first_delay_s=0) == "done"


async def test_another_fault_is_not() -> None:
    """It would fail for ever."""
    flaky = Flaky(GatemeshError("refused"), 1)
    with pytest.raises(GatemeshError, match="refused"):
        await retry_passing_faults(flaky, first_delay_s=0)
    assert flaky.left == 0
