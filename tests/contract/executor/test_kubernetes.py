"""The contract of backends on Kubernetes: a fake API server, and the real one where it is named."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from gatemesh_executor.backends.base import Phase
from gatemesh_executor.backends.kubernetes import rollback
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, PODS, STATEFUL_SETS, Resource
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.kubernetes.owners import (
    AFTER_STOP,
    MODEL_VERSION,
    STAY,
    Slot,
)
from gatemesh_executor.instances import Instance, Instances
from gatemesh_executor.pace import Pace

from .kube_cluster import Cluster
from .kube_owners import owner_of
from .test_backends import BackendContract, Rig

pytestmark = pytest.mark.integration

HABITS = ("steady", "stubborn", "fragile", "broken")
NOTES = {AFTER_STOP: STAY}


@dataclass
class KubernetesRig:
    """Owners that stay at zero pods after a stop, as every promise of the contract needs."""

    cluster: Cluster
    backend: KubernetesBackend
    resource: Resource

    @property
    def instances(self) -> Instances:
        """The instances as they are discovered, by habit."""
        suffix = "-0" if self.resource is STATEFUL_SETS else ""
        found: Mapping[str, Any] = self.backend.fleet
        return {habit: found[f"{habit}{suffix}"] for habit in HABITS}

    async def until_serving(self, life_id: str) -> None:
        """They serve at once."""

    async def steps_back(self, habit: str) -> int:
        """Look at the template that the next pod is made by."""
        owner = await self.cluster.admin.read(self.resource, habit)
        version = owner["spec"]["template"]["metadata"]["annotations"][MODEL_VERSION]
        return 2 - int(version.removeprefix("m@"))

    async def tell_to_stop(self, habit: str) -> None:
        """Delete the pod, and wait until the watch says so."""
        instance_id = self.instances[habit].instance_id
        fleet = self.backend.fleet
        pod = fleet.pod(instance_id)
        assert pod is not None
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 20}
        await self.cluster.admin.remove(PODS, pod["metadata"]["name"], options)
        told = await fleet.news.until(
            lambda: fleet.observations()[instance_id].phase is Phase.STOPPING, 30.0
        )
        assert told

    async def crash(self, habit: str) -> None:
        """End the engine in the pod, and wait until the watch says so."""
        instance_id = self.instances[habit].instance_id
        fleet = self.backend.fleet
        pod = fleet.pod(instance_id)
        assert pod is not None
        await self.cluster.node.crash(pod["metadata"]["name"])
        ended = await fleet.news.until(
            lambda: fleet.observations()[instance_id].phase is Phase.EXITED, 30.0
        )
        assert ended

    async def go_away(self) -> None:
        """Cut the way to the API server, and wait until that is noticed."""
        self.cluster.proxy.close()
        fleet = self.backend.fleet
        watched = (fleet.pods, *fleet.owners.values())
        noticed = await fleet.news.until(lambda: all(one.fault for one in watched), 30.0)
        assert noticed


@pytest.fixture(params=[STATEFUL_SETS, DEPLOYMENTS], ids=["stateful_set", "deployment"])
def resource(request: pytest.FixtureRequest) -> Resource:
    """Give each kind of owner."""
    found: Resource = request.param
    return found


class TestKubernetesBackend(BackendContract):
    """Fake and real API server alike, with nothing but the rights of our manifest."""

    @pytest.fixture
    async def rig(self, cluster: Cluster, resource: Resource) -> AsyncIterator[Rig]:
        """Give a rig with one owner per habit, all at zero pods."""
        for habit in HABITS:
            item = owner_of(resource, habit, habit, cluster.node.name, replicas=0, notes=NOTES)
            await cluster.make(resource, item)
        await roll_out_the_second(cluster, resource)
        async with cluster.backend() as backend:
            yield KubernetesRig(cluster, backend, resource)


async def roll_out_the_second(cluster: Cluster, resource: Resource) -> None:
    """Give the steady one a history, once the cluster has taken in its first template."""
    pace = Pace()
    await rollback.settled_owner(cluster.admin, slot_of(resource, "steady"), pace)
    node = cluster.node.name
    newer = owner_of(resource, "steady", "steady", node, replicas=0, notes=NOTES, version="m@2")
    patch = {"spec": {"template": newer["spec"]["template"]}}
    await cluster.admin.change(resource, "steady", patch)
    await rollback.settled_owner(cluster.admin, slot_of(resource, "steady"), pace)


def slot_of(resource: Resource, name: str) -> Slot:
    """Return the place of an owner's first instance."""
    instance = Instance(instance_id=name, base_url="http://127.0.0.1:1", program=name)
    return Slot(instance, resource, name, stays=True, service=None)
