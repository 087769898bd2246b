"""What a command of the operator fails with: what is wrong, and the way out."""

from gatemesh_common.errors import GatemeshError


class CtlError(GatemeshError):
    """The command cannot be done as it was given."""

    def __init__(self, wrong: str, way_out: str) -> None:
        super().__init__(f"{wrong}\n  {way_out}")
        self.wrong = wrong
        self.way_out = way_out


class UnreachableError(CtlError):
    """Broker or database do not answer."""
