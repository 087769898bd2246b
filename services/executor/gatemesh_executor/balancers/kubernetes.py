"""A Kubernetes Service in the rotation: a label decides, its endpoints confirm."""

from dataclasses import dataclass

from gatemesh_executor.backends.kubernetes import pods
from gatemesh_executor.backends.kubernetes.api import (
    ENDPOINTS,
    PODS,
    ConflictError,
    KubeApi,
    NotThereError,
    Object,
    RejectedError,
)
from gatemesh_executor.backends.kubernetes.fleet import PodFleet
from gatemesh_executor.backends.kubernetes.owners import SERVING
from gatemesh_executor.balancers.base import BalancerUnavailableError, Rotation
from gatemesh_executor.instances import Instance
from gatemesh_executor.pace import Pace

POLL_S = 0.1
OUT_WAIT_S = 3.0
"""Longest wait until endpoints follow a label."""
IN_ROTATION = "true"


def label_patch(pod: Object, value: str | None) -> Object:
    """Return the change of one label of this very pod; None takes it away."""
    return {"metadata": {"uid": pods.uid_of(pod), "labels": {SERVING: value}}}


def addressed_uids(endpoints: Object) -> set[str]:
    """Return the pods that a Service knows of, ready or not."""
    return {
        address["targetRef"]["uid"]
        for subset in endpoints.get("subsets") or ()
        for kind in ("addresses", "notReadyAddresses")
        for address in subset.get(kind) or ()
        if "uid" in (address.get("targetRef") or {})
    }


@dataclass
class KubernetesService:
    """Takes pods out of a Service and puts them back, besides whatever else routes to them."""

    api: KubeApi
    fleet: PodFleet
    others: Rotation
    pace: Pace

    async def take_out(self, instance: Instance, routing_version: int) -> None:
        """Take the label from every pod of the instance."""
        await self.others.take_out(instance, routing_version)
        self.fleet.believe()
        for pod in self.fleet.pods_of(instance.instance_id):
            await self._label(pod, None)

    async def put_back(self, instance: Instance) -> tuple[str, ...]:
        """Give the label to the pod that stands for the instance."""
        self.fleet.believe()
        pod = self.fleet.pod(instance.instance_id)
        if pod is None or not await self._label(pod, IN_ROTATION):
            raise BalancerUnavailableError(f"{instance.instance_id} has no pod to put back")
        return await self.others.put_back(instance)

    async def sessions(self, instance: Instance) -> int | None:
        """Return what the others count; a Service counts nothing."""
        return await self.others.sessions(instance)

    async def is_confirmed(
        self, instance: Instance, routing_version: int, deadline_s: float
    ) -> bool:
        """Wait for the others up to the deadline; what the endpoints do not confirm is raised."""
        confirmed = await self.others.is_confirmed(instance, routing_version, deadline_s)
        deadline = self.pace.now() + OUT_WAIT_S
        while not await self._is_out(instance.instance_id):
            if self.pace.now() >= deadline:
                raise BalancerUnavailableError(
                    f"{instance.instance_id} is still among the endpoints of its Service"
                )
            await self.pace.sleep(POLL_S)
        return confirmed

    async def _is_out(self, instance_id: str) -> bool:
        """Return True when no pod of the instance is among the endpoints."""
        service = self.fleet.slot(instance_id).service
        if service is None:
            return True
        try:
            endpoints = await self.api.read(ENDPOINTS, service)
        except NotThereError:
            return True
        own = {pods.uid_of(pod) for pod in self.fleet.pods_of(instance_id)}
        return own.isdisjoint(addressed_uids(endpoints))

    async def _label(self, pod: Object, value: str | None) -> bool:
        """Change the label of this very pod; False when it is gone."""
        name = pod["metadata"]["name"]
        try:
            await self.api.change(PODS, name, label_patch(pod, value))
        except NotThereError:
            return False
        except (ConflictError, RejectedError):
            # The uid is part of the patch: another pod may have taken the name. It has no label.
            if await self._is_there(pod):
                raise
            return False
        return True

    async def _is_there(self, pod: Object) -> bool:
        try:
            found = await self.api.read(PODS, pod["metadata"]["name"])
        except NotThereError:
            return False
        return pods.uid_of(found) == pods.uid_of(pod)
