"""Errors that a caller handles, each saying whether another try can help."""

from typing import ClassVar


class GatemeshError(Exception):
    """Base of all our errors."""

    retryable: ClassVar[bool] = False
    """True when the same call may succeed later without anyone changing anything."""


class BrokerUnavailableError(GatemeshError):
    """The broker did not confirm in time; the message may or may not have arrived."""

    retryable = True


class UnroutableError(GatemeshError):
    """The broker returned a mandatory message: no queue is bound to its key."""

    def __init__(self, exchange: str, routing_key: str) -> None:
        super().__init__(
            f"no queue is bound to {exchange!r} for key {routing_key!r}; start the consuming "
            "service once, it declares the queues"
        )
        self.exchange = exchange
        self.routing_key = routing_key


class BrokerRefusedError(GatemeshError):
    """The broker refused the operation for good: rights, a missing exchange, other arguments."""


class DatabaseUnavailableError(GatemeshError):
    """The database did not answer, or ended the transaction for a passing reason."""

    retryable = True


class LockHeldError(DatabaseUnavailableError):
    """Somebody else holds a lock in the database, and did not let go in time."""


class SettingsError(GatemeshError):
    """A setting is missing or out of bounds; names the variable and the way out."""
