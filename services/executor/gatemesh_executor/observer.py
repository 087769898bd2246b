"""Watching the processes: each start and exit is published, and the whole state again at times."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gatemesh_common.admin import Readiness
from gatemesh_common.clock import Clock
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import InstanceObserved
from gatemesh_executor.backends.base import BackendUnavailableError, EngineBackend, Observation
from gatemesh_executor.instances import Instance, Instances
from gatemesh_executor.metrics import BACKEND_FAULTS, INSTANCES_RUNNING
from gatemesh_executor.obeying import Sender
from gatemesh_executor.pace import Pace

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Published:
    """What was last published of an instance, and when."""

    observation: Observation
    at: float


def is_news(last: Observation, found: Observation) -> bool:
    """Return True when a life began or ended in between, however short the time was."""
    return (last.life_id, last.exit_code) != (found.life_id, found.exit_code)


def due_instances(
    observed: Mapping[str, Observation],
    published: Mapping[str, Published],
    now: float,
    repeat_s: float,
) -> tuple[str, ...]:
    """Return the instances to publish now: the new, the changed, and those long not repeated."""
    return tuple(
        instance_id
        for instance_id, found in observed.items()
        if (last := published.get(instance_id)) is None
        or is_news(last.observation, found)
        or now - last.at >= repeat_s
    )


def observed_message(instance: Instance, found: Observation, seen_at: datetime) -> InstanceObserved:
    """Return the message about one instance as it was seen at a moment."""
    return InstanceObserved(
        timestamp=seen_at,
        instance_id=instance.instance_id,
        pool=instance.pool,
        running=found.running,
        life_id=found.life_id,
        base_url=instance.base_url,
        model_version=instance.model_version,
        exit_code=found.exit_code,
    )


@dataclass(frozen=True)
class Rhythm:
    """How often is looked and repeated, in seconds."""

    poll_s: float = 0.25
    repeat_s: float = 5.0


@dataclass
class Observer:
    """Publishes what the backend says. While it says nothing, nothing is published."""

    backend: EngineBackend
    instances: Instances
    sender: Sender
    clock: Clock
    readiness: Readiness
    rhythm: Rhythm = field(default_factory=Rhythm)
    pace: Pace = field(default_factory=Pace)
    _published: dict[str, Published] = field(default_factory=dict)
    _reachable: bool = True

    async def run(self) -> None:
        """Look and publish until cancelled."""
        while True:
            await self.look()
            await self.pace.sleep(self.rhythm.poll_s)

    async def look(self) -> None:
        """Look once; what the broker did not confirm is published at the next look."""
        # Before the look: however long publishing takes, old news never looks newer than a report.
        seen_at = self.clock()
        observed = await self._observed()
        INSTANCES_RUNNING.set(sum(found.running for found in observed.values()))
        due = due_instances(observed, self._published, self.pace.now(), self.rhythm.repeat_s)
        for instance_id in due:
            await self._publish(self.instances[instance_id], observed[instance_id], seen_at)

    async def _observed(self) -> Mapping[str, Observation]:
        try:
            observed = await self.backend.observe_all()
        except BackendUnavailableError as error:
            BACKEND_FAULTS.inc()
            self._note_backend(reachable=False, detail=str(error))
            return {}
        self._note_backend(reachable=True)
        return observed

    async def _publish(self, instance: Instance, found: Observation, seen_at: datetime) -> None:
        last = self._published.get(instance.instance_id)
        if last is None or is_news(last.observation, found):
            log.info(
                "instance_observed",
                extra={
                    "instance_id": instance.instance_id,
                    "phase": found.phase,
                    "life_id": found.life_id,
                    "exit_code": found.exit_code,
                },
            )
        try:
            await self.sender.publish(observed_message(instance, found, seen_at))
        except GatemeshError as error:
            self.readiness.set("broker", met=False)
            log.warning("observation_not_published", extra={"error": type(error).__name__})
            return
        self.readiness.set("broker", met=True)
        self._published[instance.instance_id] = Published(found, self.pace.now())

    def _note_backend(self, *, reachable: bool, detail: str = "") -> None:
        self.readiness.set("backend", met=reachable)
        if reachable != self._reachable:
            log.warning("backend_reachable" if reachable else "backend_away", extra={"why": detail})
        self._reachable = reachable
