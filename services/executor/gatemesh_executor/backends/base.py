"""What the executor asks of a platform that runs engines."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_executor.instances import Instance


class Phase(StrEnum):
    """Where a process stands."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    """Told to stop, by whomever. While a process runs, so may requests, behind a closed door."""
    EXITED = "exited"
    """Ended without being told to; a dead engine does so with code 0."""
    FAILED = "failed"
    """The platform gave up starting it."""


@dataclass(frozen=True)
class Observation:
    """What the platform says of one instance at one moment."""

    phase: Phase
    life_id: str | None = None
    """Names the life that runs; None when no process does."""
    started_at: datetime | None = None
    """When that life began, no finer than a second."""
    exit_code: int | None = None
    """Of the last life, when it ended; -1 for any signal."""

    @property
    def running(self) -> bool:
        """True while a process exists, from its start to its exit."""
        return self.life_id is not None


class Ending(StrEnum):
    """How a life ended."""

    ABSENT = "absent"
    """The named life did not run any more."""
    LEFT = "left"
    """It ended by itself within the grace."""
    KILLED = "killed"
    """It outlasted the grace."""


class BackendUnavailableError(GatemeshError):
    """The platform did not answer; nothing is known to have changed."""

    retryable = True


class ProgramMissingError(SettingsError):
    """The platform does not know a program; it may be about to learn of it."""


class StartFailedError(GatemeshError):
    """The platform could not start the program, or it ended while starting."""


class StopFailedError(GatemeshError):
    """The process outlived even SIGKILL."""


class RollBackNotOfferedError(GatemeshError):
    """No way back to the model version before is known; nothing was touched."""


class RollBackFailedError(GatemeshError):
    """The way back did not end well; the present life was not ended for it."""


class EngineBackend(Protocol):
    """Acts on engine instances. Every method is idempotent.

    Raises:
        BackendUnavailableError: the platform did not answer; nothing is known to have changed.
    """

    async def verify(self) -> None:
        """Check that the platform would keep this protocol's promises.

        Raises:
            ProgramMissingError: it does not know all the programs.
            SettingsError: it would break a promise; names each program and setting.
        """

    async def observe_all(self) -> Mapping[str, Observation]:
        """Return what is known of every instance, by instance id."""

    async def stop(self, instance: Instance, life_id: str | None, grace_s: float) -> Ending:
        """End the named life and all its processes: SIGTERM, up to `grace_s` seconds, SIGKILL.

        None names the life that runs. Another life than the named one is left alone.

        Raises:
            StopFailedError: it outlived SIGKILL.
        """

    async def start(self, instance: Instance) -> None:
        """See to it that a life runs; it may not be ready yet.

        Raises:
            StartFailedError: the platform says that the program cannot be started.
        """

    async def roll_back(self, instance: Instance) -> None:
        """See to it that the next life runs the model version before the present one.

        Asked again, also for another instance that shares its configuration, it goes no further
        back. The life that runs may end by it.

        Raises:
            RollBackNotOfferedError: the platform knows no way back for this instance.
            RollBackFailedError: it could not be done.
        """


class WeightPuller(Protocol):
    """A platform that gives a new life its weights anew, where the executor cannot reach them."""

    async def start_fresh(self, instance: Instance, pull_id: str, timeout_s: float) -> bool:
        """See to it that a life runs whose weights were pulled for this order.

        False when the platform has no way to pull; a life runs all the same. May be repeated.

        Raises:
            PullFailedError: the pull failed, or took longer than `timeout_s` seconds.
            StartFailedError: as `EngineBackend.start` does.
        """
