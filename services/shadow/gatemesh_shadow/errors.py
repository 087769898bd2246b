"""What can go wrong while another instance is asked."""

from typing import ClassVar

from gatemesh_common.errors import GatemeshError


class ReplicaUnavailableError(GatemeshError):
    """The instance did not answer, or is busy: another one or a later try may."""

    retryable = True


class ReplicaRefusedError(GatemeshError):
    """The instance refuses the request for good, as any other would; carries the status."""

    retryable: ClassVar[bool] = False

    def __init__(self, status: int) -> None:
        super().__init__(f"the instance answered {status}; it does not take this request")
        self.status = status


class ReplicaBrokenError(GatemeshError):
    """The instance that was taken for healthy answers what nobody can read: no numbers, no JSON."""

    retryable = True


class NotReplayableError(GatemeshError):
    """The request cannot be put to another instance as it is; says why in one word."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the request cannot be replayed: {why}")
        self.why = why


class ModelUnavailableError(GatemeshError):
    """A model cannot be loaded here; says what to install or set."""


class SampleExpiredError(GatemeshError):
    """No instance has answered while the sample was fresh."""
