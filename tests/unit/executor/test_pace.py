"""The real pace."""

from gatemesh_executor.pace import Pace


async def test_the_default_pace_is_real_time() -> None:
    """Its clock never runs backward, and its sleep returns."""
    pace = Pace()
    before = pace.now()
    await pace.sleep(0)
    assert pace.now() >= before
