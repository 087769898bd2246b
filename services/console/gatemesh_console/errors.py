"""What goes wrong for the person at the page."""

from gatemesh_common.errors import GatemeshError


class BadInputError(GatemeshError):
    """What was sent cannot be used; names the field and the way out."""

    def __init__(self, field: str, cure: str) -> None:
        super().__init__(f"{field}: {cure}")
        self.field = field
        self.cure = cure


class NotFoundError(GatemeshError):
    """There is no such thing; says of what kind it is."""


class ForbiddenError(GatemeshError):
    """The person, or the page that sent the form, may not do this."""


class NotSignedInError(GatemeshError):
    """Nobody is signed in, or no longer."""
