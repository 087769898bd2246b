"""The closed lists and small types that messages are made of."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gatemesh_common.clock import as_utc

UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
Identifier = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class CheckLevel(StrEnum):
    """The five correctness gates, and those that others plug in."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"
    L5 = "L5"
    PLUGIN = "LX"
    """A gate that was plugged in by entry point; its name is in the verdict's details."""


class Outcome(StrEnum):
    """What a gate concluded."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Decoding(StrEnum):
    """How tokens were chosen; baselines differ by nats between the two."""

    GREEDY = "greedy"
    SAMPLED = "sampled"
    UNKNOWN = "unknown"


class InstanceState(StrEnum):
    """Where an instance stands in its life around failures."""

    STARTING = "starting"
    PROBATION = "probation"
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    DRAINING = "draining"
    RESTARTING = "restarting"
    REPLACING = "replacing"
    EJECTED = "ejected"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


class Action(StrEnum):
    """What the manager may tell the executor to do to one instance."""

    DRAIN = "drain"
    EJECT = "eject"
    RESTART = "restart"
    READMIT = "readmit"
    REPAIR = "repair"
    REPLACE = "replace"
    ROLL_BACK = "roll_back"


RequestedAction = Literal[
    "drain",
    "eject",
    "restart",
    "repair",
    "replace",
    "release",
    "quarantine",
    "pause",
    "resume",
    "reset_brake",
    "set_weight",
    "roll_back",
]
"""What an operator may ask the manager for."""


class Attribution(StrEnum):
    """Whose fault a failure is, as far as a second instance could tell."""

    INSTANCE = "instance"
    """The same request was answered well elsewhere."""
    REQUEST = "request"
    """It failed elsewhere, too: the prompt or the model version is at fault, not the instance."""
    UNKNOWN = "unknown"
    """No other instance could be asked, or none answered in time; it counts."""


class ReportOutcome(StrEnum):
    """How a command ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"


StepName = Literal[
    "taken_out",
    "confirmed",
    "unconfirmed",
    "stopped",
    "killed",
    "started",
    "ready",
    "put_back",
    "checked",
    "reloaded",
    "cache_reset",
    "pulled",
    "verified",
    "scanned",
    "rolled_back",
    "dumped",
]
