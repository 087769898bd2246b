"""What is tried again and what is not."""

import pytest

from gatemesh_common.errors import GatemeshError
from gatemesh_shadow.errors import (
    ModelUnavailableError,
    NotReplayableError,
    ReplicaBrokenError,
    ReplicaRefusedError,
    ReplicaUnavailableError,
    SampleExpiredError,
)


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (ReplicaUnavailableError("x"), True),
        (ReplicaBrokenError("x"), True),
        (ReplicaRefusedError(400), False),
        (NotReplayableError("route"), False),
        (ModelUnavailableError("x"), False),
        (SampleExpiredError(), False),
    ],
)
def test_retryable(error: GatemeshError, *, retryable: bool) -> None:
    """Only what another instance may do better."""
    assert error.retryable is retryable


def test_data_is_in_attributes() -> None:
    """Callers do not read sentences."""
    assert ReplicaRefusedError(413).status == 413
    assert NotReplayableError("content").why == "content"
