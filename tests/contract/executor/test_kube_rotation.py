"""In and out of a Service, weights pulled anew, and the way back to an earlier revision."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gatemesh_executor.backends.base import RollBackNotOfferedError, StartFailedError
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Object, Resource
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.kubernetes.owners import SERVICE, SERVING
from gatemesh_executor.backends.kubernetes.repull import REPULL, PodWeights
from gatemesh_executor.backends.kubernetes.rollback import RETURNED_TO
from gatemesh_executor.balancers.base import BalancerUnavailableError
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.balancers.kubernetes import KubernetesService, addressed_uids
from gatemesh_executor.pace import Pace
from gatemesh_executor.weights.pull import PullFailedError

from .kube_cluster import SERVICES, Cluster
from .kube_owners import owner_of
from .test_kube_pods import until_running

pytestmark = pytest.mark.integration

PORTS = [{"port": 8000}]


@pytest.fixture
async def backend(cluster: Cluster) -> AsyncIterator[KubernetesBackend]:
    """Give a backend of a namespace with a Service and no owners."""
    selector = {"app": "vllm", SERVING: "true"}
    service = {"metadata": {"name": "front"}, "spec": {"selector": selector, "ports": PORTS}}
    await cluster.make(SERVICES, service)
    async with cluster.backend() as found:
        yield found


async def make(
    cluster: Cluster, backend: KubernetesBackend, resource: Resource = STATEFUL_SETS, **kind: Any
) -> str:
    """Make an owner named vllm and return the first life of its first instance."""
    notes = {SERVICE: "front"}
    item = owner_of(resource, "vllm", "steady", cluster.node.name, notes=notes, **kind)
    await cluster.make(resource, item)
    return await until_running(backend, id_of(resource))


def id_of(resource: Resource) -> str:
    """Return the id of the first instance."""
    return "vllm-0" if resource is STATEFUL_SETS else "vllm"


def service_of(backend: KubernetesBackend) -> KubernetesService:
    """Return the balancer, with agents that agree to everything."""
    return KubernetesService(backend.api, backend.fleet, FakeRotation(applied_version=1), Pace())


async def test_only_what_has_proven_itself_is_in_rotation(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """A new pod lacks the label; put back it is among the endpoints, taken out it is not."""
    life = await make(cluster, backend, replicas=2)
    balancer, instance = service_of(backend), backend.fleet["vllm-0"]
    endpoints = await endpoints_once(cluster, lambda _: True)
    assert addressed_uids(endpoints) == set()
    await balancer.put_back(instance)
    await endpoints_once(cluster, lambda uids: uids == {life})
    with pytest.raises(BalancerUnavailableError, match="still among the endpoints"):
        await balancer.is_confirmed(instance, 1, 0.0)
    for _ in range(2):
        await balancer.take_out(instance, 1)
    assert await balancer.is_confirmed(instance, 1, 20.0)
    await endpoints_once(cluster, lambda uids: uids == set())
    assert await until_running(backend, "vllm-0") == life


async def test_the_agents_must_agree_too(cluster: Cluster, backend: KubernetesBackend) -> None:
    """They route by their own table, whatever the endpoints say."""
    await make(cluster, backend)
    balancer = service_of(backend)
    await balancer.take_out(backend.fleet["vllm-0"], 1)
    assert not await balancer.is_confirmed(backend.fleet["vllm-0"], 2, 5.0)
    assert await balancer.is_confirmed(backend.fleet["vllm-0"], 1, 5.0)


async def test_the_next_life_is_out_of_rotation(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """The label does not come back by itself: probation decides."""
    old = await make(cluster, backend)
    balancer, instance = service_of(backend), backend.fleet["vllm-0"]
    await balancer.put_back(instance)
    await backend.stop(instance, old, 20.0)
    await until_running(backend, "vllm-0", old)
    await endpoints_once(cluster, lambda uids: uids == set())


async def test_nothing_can_be_put_back_where_nothing_runs(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """The manager learns that its order had no effect."""
    await make(cluster, backend)
    await cluster.admin.change(STATEFUL_SETS, "vllm", {"spec": {"replicas": 0}}, sub="scale")
    assert await backend.fleet.news.until(lambda: backend.fleet.pod("vllm-0") is None, 30.0)
    with pytest.raises(BalancerUnavailableError, match="no pod"):
        await service_of(backend).put_back(backend.fleet["vllm-0"])


async def endpoints_once(cluster: Cluster, fit: Callable[[set[str]], bool]) -> Object:
    """Return the Service's endpoints as soon as they fit."""
    endpoints = Resource("", "v1", "endpoints")
    pace = Pace()
    deadline = pace.now() + 30
    while True:
        found = await cluster.admin.read(endpoints, "front")
        if fit(addressed_uids(found)):
            return found
        assert pace.now() < deadline, found
        await pace.sleep(0.05)


async def test_weights_are_pulled_for_the_order(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """The init container says which order it obeyed; a repeated order starts nothing anew."""
    cluster.node.pull_delay_s = 0.5
    old = await make(cluster, backend, pulls=True)
    instance = backend.fleet["vllm-0"]
    await backend.stop(instance, old, 20.0)
    weights = PodWeights(backend)
    assert await weights.start_fresh(instance, "order-1", 30.0)
    new = await until_running(backend, "vllm-0", old)
    assert await weights.start_fresh(instance, "order-1", 30.0)
    assert await until_running(backend, "vllm-0") == new
    pod = backend.fleet.pod("vllm-0")
    assert pod is not None
    assert pod["metadata"]["annotations"][REPULL] == "order-1"


async def test_an_order_that_came_too_late_is_given_again(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """A life with the old weights does not pass for one with new ones."""
    old = await make(cluster, backend, pulls=True)
    cluster.node.pull_delay_s = 0.5
    assert await PodWeights(backend).start_fresh(backend.fleet["vllm-0"], "order-1", 30.0)
    assert await until_running(backend, "vllm-0", old) != old


async def test_a_failed_pull_is_told(cluster: Cluster, backend: KubernetesBackend) -> None:
    """With the last words of the init container."""
    cluster.node.pull_delay_s = 0.5
    old = await make(cluster, backend, pulls=True)
    cluster.node.failing_pulls = True
    await backend.stop(backend.fleet["vllm-0"], old, 20.0)
    with pytest.raises((PullFailedError, StartFailedError), match="disk full"):
        await PodWeights(backend).start_fresh(backend.fleet["vllm-0"], "order-1", 30.0)


async def test_without_an_init_container_it_is_a_cold_start(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """The report says that nothing was pulled."""
    old = await make(cluster, backend)
    await backend.stop(backend.fleet["vllm-0"], old, 20.0)
    assert not await PodWeights(backend).start_fresh(backend.fleet["vllm-0"], "order-1", 30.0)
    assert await until_running(backend, "vllm-0", old) != old


@pytest.mark.parametrize(
    "resource", [STATEFUL_SETS, DEPLOYMENTS], ids=["stateful_set", "deployment"]
)
async def test_a_roll_back_returns_to_the_revision_before(
    cluster: Cluster, backend: KubernetesBackend, resource: Resource
) -> None:
    """Once: a second delivery would otherwise go forward again."""
    name = id_of(resource)
    first = await make(cluster, backend, resource)
    with pytest.raises(RollBackNotOfferedError):
        await backend.roll_back(backend.fleet[name])
    newer = owner_of(resource, "vllm", "steady", cluster.node.name, version="m@2")
    patch = {"spec": {"template": newer["spec"]["template"]}}
    await cluster.admin.change(resource, "vllm", patch)
    second = await until_running(backend, name, first)
    assert backend.fleet[name].model_version == "m@2"
    await backend.roll_back(backend.fleet[name])
    third = await until_running(backend, name, second)
    assert await backend.fleet.news.until(lambda: backend.fleet[name].model_version == "m@1", 30.0)
    await backend.roll_back(backend.fleet[name])
    owner = await cluster.admin.read(resource, "vllm")
    template = owner["spec"]["template"]["metadata"]
    assert template["annotations"] == {"gatemesh.io/model-version": "m@1"}
    assert "pod-template-hash" not in template["labels"]
    assert owner["metadata"]["annotations"][RETURNED_TO].startswith("vllm-")
    assert await until_running(backend, name) == third
