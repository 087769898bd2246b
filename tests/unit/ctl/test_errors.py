"""Failures as the operator reads them."""

from gatemesh_ctl.errors import CtlError, UnreachableError


def test_an_error_says_what_is_wrong_and_the_way_out() -> None:
    """On two lines."""
    assert str(CtlError("the door is locked", "use the key")) == "the door is locked\n  use the key"


def test_unreachable_is_told_apart() -> None:
    """Scripts see it by the exit code."""
    assert issubclass(UnreachableError, CtlError)
