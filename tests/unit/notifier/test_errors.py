"""The notifier's errors."""

from gatemesh_common.consuming import reason_of
from gatemesh_notifier.errors import UndeliveredError


def test_who_was_not_told_is_named_in_the_dead_letter() -> None:
    """With the way out; trying again is over."""
    error = UndeliveredError(("oncall", "room"))
    assert not error.retryable
    assert "oncall, room" in reason_of(error)
    assert "gatemesh_notifier check" in reason_of(error)
