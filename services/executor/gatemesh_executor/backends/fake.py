"""A backend in memory that keeps the protocol's promises, for tests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gatemesh_common.clock import Clock
from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Ending,
    Observation,
    Phase,
    RollBackNotOfferedError,
    StartFailedError,
)
from gatemesh_executor.instances import Instance, Instances


@dataclass(frozen=True)
class Habits:
    """How a simulated engine behaves."""

    drain_s: float = 0.0
    """Seconds from SIGTERM to its end; infinite when it ignores the signal."""
    fails_to_start: bool = False
    knows_a_way_back: bool = True


class FakeBackend:
    """Engines that exist only as records; `down` makes the platform unreachable."""

    def __init__(self, instances: Instances, clock: Clock) -> None:
        self._clock = clock
        self._lives = 0
        self._seen = {instance_id: Observation(Phase.STOPPED) for instance_id in instances}
        self.habits = {instance_id: Habits() for instance_id in instances}
        self.down = False
        self.calls: list[tuple[str, str]] = []
        self.rolled_back: set[str] = set()

    async def verify(self) -> None:
        """Find nothing wrong, if the platform answers."""
        self._answer()

    async def observe_all(self) -> Mapping[str, Observation]:
        """Return a copy of the records."""
        self._answer()
        return dict(self._seen)

    async def stop(self, instance: Instance, life_id: str | None, grace_s: float) -> Ending:
        """End the named life at once; the engine's habits say how."""
        self._answer()
        self.calls.append(("stop", instance.instance_id))
        found = self._seen[instance.instance_id]
        if not found.running or life_id not in (None, found.life_id):
            return Ending.ABSENT
        killed = self.habits[instance.instance_id].drain_s > grace_s
        self._seen[instance.instance_id] = Observation(Phase.STOPPED, exit_code=-1 if killed else 0)
        return Ending.KILLED if killed else Ending.LEFT

    async def start(self, instance: Instance) -> None:
        """Begin a new life unless one runs."""
        self._answer()
        self.calls.append(("start", instance.instance_id))
        if self._seen[instance.instance_id].running:
            return
        if self.habits[instance.instance_id].fails_to_start:
            self._seen[instance.instance_id] = Observation(Phase.FAILED)
            raise StartFailedError("SPAWN_ERROR")
        self._lives += 1
        self._seen[instance.instance_id] = Observation(
            Phase.RUNNING,
            f"life-{self._lives}",
            self._clock().replace(microsecond=0),
        )

    async def roll_back(self, instance: Instance) -> None:
        """Note that the next life runs the former version."""
        self._answer()
        self.calls.append(("roll_back", instance.instance_id))
        if not self.habits[instance.instance_id].knows_a_way_back:
            raise RollBackNotOfferedError("this engine knows no way back")
        self.rolled_back.add(instance.instance_id)

    def tell_to_stop(self, instance_id: str) -> None:
        """Begin the end of the running life, as somebody else's stop does; it still runs."""
        self._seen[instance_id] = replace(self._seen[instance_id], phase=Phase.STOPPING)

    def crash(self, instance_id: str, exit_code: int = 0) -> None:
        """End the running life from within."""
        self._seen[instance_id] = Observation(Phase.EXITED, exit_code=exit_code)

    def behave(self, instance_id: str, **habits: float | bool) -> None:
        """Change some habits of one engine."""
        self.habits[instance_id] = replace(self.habits[instance_id], **habits)  # type: ignore[arg-type]

    def _answer(self) -> None:
        if self.down:
            raise BackendUnavailableError("the platform is down")
