"""The instances of a namespace as they are now, discovered by label and followed by watches."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping

from gatemesh_common.running import first_to_end
from gatemesh_executor.backends.base import Observation
from gatemesh_executor.backends.kubernetes import owners, pods
from gatemesh_executor.backends.kubernetes.api import (
    DEPLOYMENTS,
    PODS,
    STATEFUL_SETS,
    KubeApi,
    Object,
    Resource,
)
from gatemesh_executor.backends.kubernetes.owners import Slot
from gatemesh_executor.backends.kubernetes.watching import News, Watched
from gatemesh_executor.instances import Instance

log = logging.getLogger(__name__)

EXITS_KEPT = 1000
OWNERS = (STATEFUL_SETS, DEPLOYMENTS)


class PodFleet(Mapping[str, Instance]):
    """Every instance that was ever seen here, by its id; it changes while it is used.

    One that its owner no longer wants stays known, and is stopped: that it ended has to be told.
    """

    def __init__(self, api: KubeApi, selector: str = owners.POOL) -> None:
        self.news = News()
        self._slots: dict[str, Slot] = {}
        self._exits: dict[str, int] = {}
        self._ignored: dict[str, list[str]] = {}
        self.pods = Watched(api, PODS, selector, self.news, self._note_exit)
        self.owners = {
            resource: Watched(api, resource, selector, self.news, self._owner_reader(resource))
            for resource in OWNERS
        }

    async def run(self) -> None:
        """Follow owners and pods until cancelled.

        Raises:
            SettingsError: the login is wrong or the role lacks a verb.
        """
        await first_to_end(*(watched.run() for watched in self._all_watched()))

    def __getitem__(self, instance_id: str) -> Instance:
        slot = self._slots[instance_id]
        pod = self.pod(instance_id)
        if pod is None:
            return slot.instance
        # While an owner's pods are replaced one by one, each has the version it was made with.
        version = owners.model_version_of(pod)
        return slot.instance.model_copy(update={"model_version": version})

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._slots))

    def __len__(self) -> int:
        return len(self._slots)

    def believe(self) -> None:
        """Return when what is known is as new as the watches; otherwise raise why it is not."""
        for watched in self._all_watched():
            if watched.fault is not None:
                # It is raised again and again; each time would add to the last one's traceback.
                raise watched.fault.with_traceback(None)

    async def until_known(self) -> None:
        """Return once everything has been listed."""
        await self.news.until(
            lambda: all(watched.fault is None for watched in self._all_watched()), math.inf
        )

    def slot(self, instance_id: str) -> Slot:
        """Return an instance's place at its owner."""
        return self._slots[instance_id]

    def owner(self, slot: Slot) -> Object | None:
        """Return the owner as it is now; None when it is gone."""
        return self.owners[slot.resource].objects.get(slot.owner)

    def pods_of(self, instance_id: str) -> list[Object]:
        """Return all pods of an instance; there are two while one makes way for the next."""
        found = self.pods.objects.values()
        return [pod for pod in found if owners.instance_id_of(pod) == instance_id]

    def pod(self, instance_id: str) -> Object | None:
        """Return the pod that stands for the instance."""
        return pods.choose(self.pods_of(instance_id))

    def has_pod(self, uid: str) -> bool:
        """Return True while a pod with this uid exists."""
        return any(pods.uid_of(pod) == uid for pod in self.pods.objects.values())

    def exit_code(self, uid: str) -> int | None:
        """Return how the engine in a pod ended, as far as that was ever seen."""
        return self._exits.get(uid)

    def observations(self) -> dict[str, Observation]:
        """Return where every instance stands."""
        sorted_pods: dict[str, list[Object]] = {}
        for pod in self.pods.objects.values():
            sorted_pods.setdefault(owners.instance_id_of(pod) or "", []).append(pod)
        return {
            instance_id: pods.observation(pods.choose(sorted_pods.get(instance_id, ())))
            for instance_id in self._slots
        }

    def faults(self) -> list[str]:
        """Say what keeps owners from being acted on, and which ids are there twice."""
        return [fault for faults in self._ignored.values() for fault in faults]

    def _note_exit(self, pod: Object) -> None:
        code = pods.exit_code(pod)
        if code is not None:
            self._exits[pods.uid_of(pod)] = code
            while len(self._exits) > EXITS_KEPT:
                del self._exits[next(iter(self._exits))]

    def _owner_reader(self, resource: Resource) -> Callable[[Object], None]:
        def read(owner: Object) -> None:
            self._read_owner(owner, resource)

        return read

    def _read_owner(self, owner: Object, resource: Resource) -> None:
        name = f"{resource.plural}/{owner['metadata']['name']}"
        faults = owners.owner_faults(owner, resource)
        if faults and faults != self._ignored.get(name):
            log.warning("owner_ignored", extra={"owner": name, "why": "; ".join(faults)})
        self._ignored[name] = faults
        for slot in owners.slots(owner, resource):
            known = self._slots.setdefault(slot.instance.instance_id, slot)
            if (known.resource, known.owner) != (resource, slot.owner):
                self._ignored[name] = [f"{name}: the id {slot.instance.instance_id} is taken"]
                continue
            self._slots[slot.instance.instance_id] = slot

    def _all_watched(self) -> tuple[Watched, ...]:
        return (self.pods, *self.owners.values())
