"""An operator's request together with what the broker says of its sender."""

from typing import Self

from gatemesh_common.messages import ActionRequest, Identifier


class Asked(ActionRequest):
    """A request as it is decided about and kept; never read from the wire."""

    proven_user: Identifier | None = None
    """The broker's user who sent it; absent where the message carried no user id."""

    @classmethod
    def of(cls, request: ActionRequest, user: str | None) -> Self:
        """Return a request with its sender; what its body claims of him counts for nothing."""
        return cls.model_validate({**request.model_dump(), "proven_user": user})

    @property
    def asker(self) -> str:
        """Who asks, in words: the name he gives, and the proven one where that is another."""
        if self.proven_user in (None, self.requested_by):
            return self.requested_by
        return f"{self.requested_by} (user {self.proven_user})"
