"""Errors carry what their handlers need."""

from gatemesh_agent.errors import (
    ClientGoneError,
    InstanceFailedError,
    InstanceSilentError,
    StreamBrokenError,
    UnfitAnswerError,
    WishRefusedError,
)
from gatemesh_agent.shield import Withheld
from gatemesh_agent.wishes import Wish
from gatemesh_common.messages import Reason


def test_only_a_failed_instance_makes_another_try_sensible() -> None:
    """A client that left, or a stream that began, is past helping."""
    assert InstanceFailedError("broken", "x").retryable
    assert not InstanceSilentError(1.0).retryable
    assert not StreamBrokenError("x").retryable
    assert not ClientGoneError("x").retryable


def test_errors_say_what_happened() -> None:
    """In words and as data."""
    assert InstanceFailedError("draining", "is being stopped").cause == "draining"
    assert InstanceSilentError(2.5).waited_s == 2.5
    assert "2.5 s" in str(InstanceSilentError(2.5))
    assert StreamBrokenError("broke off").what == "broke off"
    assert WishRefusedError(Wish(5)).lesser == Wish(5)
    withheld = Withheld("engine-0", hard=True, reason=Reason.NAN_LOGITS)
    assert UnfitAnswerError(withheld).withheld is withheld
