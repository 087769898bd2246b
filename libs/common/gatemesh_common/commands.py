"""Orders of the manager to the executor."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, TypeAdapter

from gatemesh_common.exchanges import CONTROL
from gatemesh_common.message import InstanceMessage
from gatemesh_common.words import Action, UtcDatetime


class InstanceCommand(InstanceMessage):
    """An order to the executor about one life of one instance."""

    exchange = CONTROL
    routing_key = "command.v1"

    action: Action
    incarnation: int = Field(ge=0)
    life_id: str | None = Field(default=None, max_length=200)
    """The backend's name of the life in question; if another one runs, the order is done."""
    fence: int = Field(ge=1)
    """Rises with each command of an instance; one below the highest seen is refused."""
    incident_id: str | None = None
    expires_at: UtcDatetime
    grace_s: float = Field(default=60.0, ge=0, le=3600)
    """Longest wait for running requests before the process group is killed, in seconds."""

    def key_words(self) -> tuple[str, ...]:
        """Return action, pool and instance."""
        return (self.action, self.pool, self.instance_id)


class DrainInstance(InstanceCommand):
    """Take out, let running requests end, stop within the grace, then kill."""

    action: Literal[Action.DRAIN] = Action.DRAIN
    routing_version: int = Field(default=0, ge=0)
    """The first routing table without the instance; agents must have applied it before SIGTERM."""


class EjectInstance(InstanceCommand):
    """Take out of every balancer at once; the process stays up for confirmation."""

    action: Literal[Action.EJECT] = Action.EJECT
    routing_version: int = Field(default=0, ge=0)


class RestartInstance(InstanceCommand):
    """End the named life, if it still runs, and start a new one; done when it answers `/health`."""

    action: Literal[Action.RESTART] = Action.RESTART
    start_timeout_s: float = Field(default=300.0, gt=0, le=3600)
    dump_timeout_s: float = Field(default=0.0, ge=0, le=3600)
    """Longest time for a core dump of the named life before it ends; 0 takes none."""


class ReadmitInstance(InstanceCommand):
    """Put back into every balancer."""

    action: Literal[Action.READMIT] = Action.READMIT


class RepairInstance(InstanceCommand):
    """Repair the named life in place: check weights, reload them, reset the prefix cache.

    Fails where the engine does not offer it; the manager then goes on to a restart.
    """

    action: Literal[Action.REPAIR] = Action.REPAIR


class ReplaceInstance(InstanceCommand):
    """End the named life, pull the weights anew, verify and scan them, and start a new life."""

    action: Literal[Action.REPLACE] = Action.REPLACE
    start_timeout_s: float = Field(default=300.0, gt=0, le=3600)
    pull_timeout_s: float = Field(default=1800.0, gt=0, le=86_400)


class RollBackInstance(InstanceCommand):
    """Have the model version before the present one run: switch to it, and start a new life.

    Fails where no way back is configured; the named life is then left alone.
    """

    action: Literal[Action.ROLL_BACK] = Action.ROLL_BACK
    start_timeout_s: float = Field(default=300.0, gt=0, le=3600)
    roll_back_timeout_s: float = Field(default=600.0, gt=0, le=86_400)
    """Longest time for the switch itself."""


AnyCommand = (
    DrainInstance
    | EjectInstance
    | RestartInstance
    | ReadmitInstance
    | RepairInstance
    | ReplaceInstance
    | RollBackInstance
)
Command = Annotated[AnyCommand, Discriminator("action")]
COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(Command)
