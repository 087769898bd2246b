"""What can end an exchange with an instance, each handled in its own way."""

from typing import Literal

from gatemesh_common.errors import GatemeshError

Cause = Literal["draining", "unreachable", "broken"]


class InstanceFailedError(GatemeshError):
    """The instance failed before the client got a byte: another may answer."""

    retryable = True

    def __init__(self, cause: Cause, what: str) -> None:
        super().__init__(what)
        self.cause: Cause = cause
        self.what = what


class InstanceSilentError(GatemeshError):
    """The instance sent nothing in time."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"no byte in {waited_s:g} s")
        self.waited_s = waited_s


class StreamBrokenError(GatemeshError):
    """The instance broke its answer off after the first byte."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class NanRefusedError(GatemeshError):
    """The engine refused only because log probabilities were added, and they are NaN."""


class LogprobsRefusedError(GatemeshError):
    """The engine refused the log probabilities that were added, for another reason than NaN."""

    def __init__(self, allowed: int | None) -> None:
        super().__init__("log probabilities are refused")
        self.allowed = allowed
        """How many the engine says it allows; None when it may mind something else."""


class ClientGoneError(GatemeshError):
    """The client left, or does not read its answer."""
