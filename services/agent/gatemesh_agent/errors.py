"""What can end an exchange with an instance, each handled in its own way."""

from typing import Literal

from gatemesh_agent.shield import Withheld
from gatemesh_agent.wishes import Wish
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


class WishRefusedError(GatemeshError):
    """The engine refused what was added to the request, for another reason than NaN."""

    def __init__(self, lesser: Wish) -> None:
        super().__init__("what was added is refused")
        self.lesser = lesser
        """What to add instead."""


class UnfitAnswerError(GatemeshError):
    """The answer is bad and not for the client, as long as there is another."""

    def __init__(self, withheld: Withheld) -> None:
        super().__init__(withheld.reason)
        self.withheld = withheld


class ClientGoneError(GatemeshError):
    """The client left, or does not read its answer."""
