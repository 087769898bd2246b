"""Time as an argument."""

from datetime import UTC, datetime, timedelta

from gatemesh_common.clock import utc_now


def test_the_present_moment_is_aware_and_in_utc() -> None:
    """A moment without a zone would be read as local time."""
    now = utc_now()
    assert now.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - now) < timedelta(minutes=1)
