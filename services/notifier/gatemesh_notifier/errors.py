"""Errors of the notifier."""

from gatemesh_common.errors import GatemeshError


class UndeliveredError(GatemeshError):
    """Somebody who was to be told of an event could not be reached in time."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        super().__init__(
            f"not delivered to {', '.join(targets)}: every try failed; check the address with "
            "`python -m gatemesh_notifier check`"
        )
        self.targets = targets
