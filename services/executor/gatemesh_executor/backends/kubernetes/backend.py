"""Engines that run as pods: stop is an eviction, start is up to the pod's owner."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Ending,
    Observation,
    Phase,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.backends.kubernetes import pods, rights, rollback
from gatemesh_executor.backends.kubernetes.api import KubeApi, NotThereError, Object
from gatemesh_executor.backends.kubernetes.fleet import PodFleet
from gatemesh_executor.backends.kubernetes.owners import Slot
from gatemesh_executor.backends.kubernetes.stopping import PodEnder
from gatemesh_executor.instances import Instance
from gatemesh_executor.pace import Pace

log = logging.getLogger(__name__)

KILL_WAIT_S = 60.0
"""Longest wait for a pod to vanish after its grace: a kubelet also unmounts and reports."""
POD_WAIT_S = 10.0
"""Longest wait for an owner to make a pod, and for its engine to begin."""
DEAD = (Phase.EXITED, Phase.FAILED)


@dataclass
class KubernetesBackend:
    """Acts on the pods of one namespace; the fleet must be running."""

    api: KubeApi
    fleet: PodFleet
    delete_after_s: float | None = None
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        self.ender = PodEnder(self.api, self.delete_after_s, self.pace)

    async def verify(self) -> None:
        """Check the executor's rights, and that owners and their pods keep what is promised."""
        missing = await rights.missing_rights(self.api)
        if missing:
            words = ", ".join(right.worded() for right in missing)
            raise SettingsError(
                f"the executor's role in namespace {self.api.namespace!r} lacks: {words}; "
                "apply deploy/kubernetes/executor-rbac.yaml"
            )
        self.fleet.believe()
        if faults := self.fleet.faults():
            raise SettingsError("these owners cannot be acted on:\n  " + "\n  ".join(faults))

    async def observe_all(self) -> Mapping[str, Observation]:
        """Return what the watches say of every instance."""
        self.fleet.believe()
        return self.fleet.observations()

    async def stop(self, instance: Instance, life_id: str | None, grace_s: float) -> Ending:
        """Evict the pod of the named life and wait until it is gone."""
        self.fleet.believe()
        slot = self.fleet.slot(instance.instance_id)
        begun = self.pace.now()
        ended = await self._begin_end(instance.instance_id, life_id, grace_s)
        if slot.stays and (ended is not None or not self.fleet.pods_of(instance.instance_id)):
            await self._scale(slot, 0)
        if ended is None:
            return Ending.ABSENT
        await self._until_gone(pods.uid_of(ended), grace_s + KILL_WAIT_S)
        waited_s = self.pace.now() - begun
        if slot.stays:
            await self._until_empty(instance.instance_id)
        return self._ending(pods.uid_of(ended), waited_s, grace_s)

    async def start(self, instance: Instance) -> None:
        """See to it that the owner has made a pod, and a fresh one if the present one is dead."""
        await self.ensure_pod(instance)
        await self._until_begun(instance.instance_id)

    async def ensure_pod(self, instance: Instance) -> Object:
        """Return the pod of the next or present life; its engine may not run yet.

        Raises:
            StartFailedError: the owner wants no such pod.
        """
        self.fleet.believe()
        instance_id = instance.instance_id
        await self._until_not_ending(instance_id)
        await self._discard_dead(instance_id)
        slot = self.fleet.slot(instance_id)
        if slot.stays:
            await self._scale(slot, 1)
        elif self.fleet.pod(instance_id) is None:
            refuse_unwanted(slot, self.fleet.owner(slot))
        await self.fleet.news.until(lambda: self._living(instance_id) is not None, POD_WAIT_S)
        self.fleet.believe()
        pod = self._living(instance_id)
        if pod is None:
            raise BackendUnavailableError(f"{slot.owner} has made no pod for {instance_id}")
        return pod

    async def roll_back(self, instance: Instance) -> None:
        """Give the instance's owner its previous pod template; asked again, it does nothing.

        It is about all instances of the owner, and the lives that run may end by it.

        Raises:
            RollBackNotOfferedError: there is no earlier revision.
        """
        slot = self.fleet.slot(instance.instance_id)
        revision = await rollback.roll_back(self.api, slot, self.pace)
        log.info("rolled_back", extra={"owner": slot.owner, "revision": revision})

    async def _begin_end(
        self, instance_id: str, life_id: str | None, grace_s: float
    ) -> Object | None:
        for pod in self.fleet.pods_of(instance_id):
            ended = await self.ender.end(pod["metadata"]["name"], life_id, grace_s)
            if ended is not None:
                return ended
        return None

    async def _until_gone(self, uid: str, deadline_s: float) -> None:
        if await self.fleet.news.until(lambda: not self.fleet.has_pod(uid), deadline_s):
            return
        self.fleet.believe()
        raise StopFailedError(
            f"pod {uid} is still there after its grace; its node may be gone. Where that is sure, "
            "delete the pod by force"
        )

    async def _until_empty(self, instance_id: str) -> None:
        """End what the owner made between the eviction and its scaling to zero."""
        for pod in self.fleet.pods_of(instance_id):
            await self.ender.discard(pod)
        await self.fleet.news.until(lambda: not self.fleet.pods_of(instance_id), KILL_WAIT_S)

    async def _until_not_ending(self, instance_id: str) -> None:
        """Wait for a pod that is on its way out, as long as its own grace says."""
        for pod in self.fleet.pods_of(instance_id):
            if pods.is_ending(pod):
                grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
                await self._until_gone(pods.uid_of(pod), grace_s + KILL_WAIT_S)

    async def _discard_dead(self, instance_id: str) -> None:
        """Delete a pod whose engine ended or cannot begin: its owner makes a fresh one at once."""
        pod = self.fleet.pod(instance_id)
        if pod is None or pods.observation(pod).phase not in DEAD:
            return
        await self.ender.discard(pod)
        await self._until_gone(pods.uid_of(pod), KILL_WAIT_S)

    async def _until_begun(self, instance_id: str) -> None:
        def settled() -> bool:
            found = pods.observation(self.fleet.pod(instance_id))
            return found.running or found.phase in DEAD

        await self.fleet.news.until(settled, POD_WAIT_S)
        pod = self.fleet.pod(instance_id)
        found = pods.observation(pod)
        if pod is not None and found.phase in DEAD:
            raise StartFailedError(pods.trouble(pod) or f"it ended with code {found.exit_code}")

    async def _scale(self, slot: Slot, replicas: int) -> None:
        patch = {"spec": {"replicas": replicas}}
        try:
            # Never skipped: what the watch last said of the owner may be older than our own patch.
            await self.api.change(slot.resource, slot.owner, patch, sub="scale")
        except NotThereError:
            if replicas:
                raise StartFailedError(f"{slot.resource.plural}/{slot.owner} is gone") from None

    def _living(self, instance_id: str) -> Object | None:
        pod = self.fleet.pod(instance_id)
        return None if pod is None or pods.is_ending(pod) else pod

    def _ending(self, uid: str, waited_s: float, grace_s: float) -> Ending:
        """Tell by the exit code how it ended, or by the time where no code was seen."""
        code = self.fleet.exit_code(uid)
        killed = waited_s >= grace_s if code is None else code == pods.KILLED_CODE
        return Ending.KILLED if killed else Ending.LEFT


def refuse_unwanted(slot: Slot, owner: Object | None) -> None:
    """Raise StartFailedError when the owner is gone or wants no pod for this instance."""
    if owner is None:
        raise StartFailedError(f"{slot.resource.plural}/{slot.owner} is gone")
    replicas = int(owner["spec"].get("replicas", 1))
    start = int((owner["spec"].get("ordinals") or {}).get("start", 0))
    ordinal = slot.instance.instance_id.removeprefix(f"{slot.owner}-")
    wanted = replicas if not ordinal.isdecimal() else replicas - (int(ordinal) - start)
    if wanted < 1:
        raise StartFailedError(f"{slot.owner} has {replicas} replicas and does not want this one")
