"""The API server's refusals and silences: what passes is tried again, the rest is named."""

import asyncio

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError, Ending
from gatemesh_executor.backends.kubernetes.api import (
    PODS,
    STATEFUL_SETS,
    KubeApi,
    NotThereError,
    RejectedError,
    Resource,
)
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.kubernetes.rights import Right, is_allowed

from .kube_cluster import REAL, Cluster
from .kube_owners import owner_of
from .test_kube_pods import until_running

pytestmark = pytest.mark.integration

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles")
FORBIDDEN = (
    Right("", "pods", "create"),
    Right("", "pods", "deletecollection"),
    Right("", "pods/exec", "create"),
    Right("", "pods/status", "patch"),
    Right("", "secrets", "get"),
    Right("", "configmaps", "list"),
    Right("", "nodes", "get"),
    Right("", "services", "patch"),
    Right("apps", "statefulsets", "create"),
    Right("apps", "statefulsets", "delete"),
    Right("apps", "deployments", "update"),
    Right("rbac.authorization.k8s.io", "roles", "patch"),
)


async def one_engine(cluster: Cluster, backend: KubernetesBackend) -> str:
    """Make a StatefulSet of one engine and return its life."""
    item = owner_of(STATEFUL_SETS, "vllm", "steady", cluster.node.name)
    await cluster.make(STATEFUL_SETS, item)
    return await until_running(backend, "vllm-0")


async def test_a_cut_watch_goes_on_where_it_was(cluster: Cluster) -> None:
    """What happened meanwhile is seen; until then nothing is claimed."""
    async with cluster.backend() as backend:
        await one_engine(cluster, backend)
        cluster.proxy.sever()
        assert await backend.fleet.news.until(lambda: backend.fleet.pods.fault is not None, 30.0)
        with pytest.raises(BackendUnavailableError):
            await backend.observe_all()
        await cluster.admin.change(STATEFUL_SETS, "vllm", {"spec": {"replicas": 2}}, sub="scale")
        await until_running(backend, "vllm-1")
        # The other watches come back at their own pace.
        await asyncio.wait_for(backend.fleet.until_known(), 30.0)
        await backend.observe_all()


@pytest.mark.parametrize("cluster", ["fake"], indirect=True)
async def test_an_expired_watch_lists_again(cluster: Cluster) -> None:
    """410 Gone: the API server has forgotten the version that is asked for."""
    assert cluster.fake is not None
    async with cluster.backend() as backend:
        await one_engine(cluster, backend)
        for watched in (backend.fleet.pods, *backend.fleet.owners.values()):
            watched._version = "1"
        cluster.fake.store.compact()
        cluster.proxy.sever()
        await cluster.admin.change(STATEFUL_SETS, "vllm", {"spec": {"replicas": 2}}, sub="scale")
        await until_running(backend, "vllm-1")
        assert int(backend.fleet.pods._version) > 1


@pytest.mark.parametrize("cluster", [REAL], indirect=True)
async def test_least_privilege(cluster: Cluster) -> None:
    """The manifest allows nothing that the executor does not use."""
    granted = [right for right in FORBIDDEN if await is_allowed(cluster.executor, right)]
    assert granted == []


async def test_a_missing_right_is_named_at_the_start(cluster: Cluster) -> None:
    """Not when the first engine is on fire."""
    async with cluster.backend() as backend:
        await deny_evictions(cluster)
        with pytest.raises(SettingsError, match="create pods/eviction"):
            await backend.verify()


async def test_a_right_that_is_taken_away_is_named(cluster: Cluster) -> None:
    """The report of the command says what the role lacks."""
    async with cluster.backend() as backend:
        life = await one_engine(cluster, backend)
        await deny_evictions(cluster)
        with pytest.raises(SettingsError, match="lacks the verb 'create' on 'pods/eviction'"):
            await backend.stop(backend.fleet["vllm-0"], life, 1.0)


async def deny_evictions(cluster: Cluster) -> None:
    """Take the right to evict away, and wait until that is in force."""
    right = Right("", "pods/eviction", "create")
    if cluster.fake is not None:
        cluster.fake.denied.add((right.verb, right.resource))
        return
    role = await cluster.admin.read(ROLES, "gatemesh-executor")
    rules = [rule for rule in role["rules"] if rule["resources"] != ["pods/eviction"]]
    await cluster.admin.change(ROLES, "gatemesh-executor", {"rules": rules})
    while await is_allowed(cluster.executor, right):
        pass


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("cluster", ["fake"], indirect=True)
async def test_passing_faults_are_told_as_such(cluster: Cluster, status: int) -> None:
    """The same command is tried again, and then it works."""
    assert cluster.fake is not None
    async with cluster.backend() as backend:
        life = await one_engine(cluster, backend)
        cluster.fake.faults.append(("create", "pods/eviction", status))
        with pytest.raises(BackendUnavailableError, match=str(status)):
            await backend.stop(backend.fleet["vllm-0"], life, 20.0)
        assert await backend.stop(backend.fleet["vllm-0"], life, 20.0) is Ending.LEFT


@pytest.mark.parametrize("cluster", ["fake"], indirect=True)
async def test_a_conflict_is_read_again(cluster: Cluster) -> None:
    """409 on an eviction that names an older version."""
    assert cluster.fake is not None
    async with cluster.backend() as backend:
        life = await one_engine(cluster, backend)
        cluster.fake.faults += [("create", "pods/eviction", 409)] * 3
        assert await backend.stop(backend.fleet["vllm-0"], life, 20.0) is Ending.LEFT
        assert cluster.fake.faults == []


@pytest.mark.parametrize("cluster", ["fake"], indirect=True)
async def test_lists_and_watches_that_fail_are_begun_again(cluster: Cluster) -> None:
    """An API server that is being restarted answers 500 for a while."""
    assert cluster.fake is not None
    cluster.fake.faults += [("list", "pods", 500), ("watch", "pods", 429), ("watch", "pods", 410)]
    async with cluster.backend() as backend:
        await one_engine(cluster, backend)
        assert cluster.fake.faults == []


async def test_faults_of_the_request_are_told_apart(cluster: Cluster) -> None:
    """No retry mends them."""
    api: KubeApi = cluster.admin
    with pytest.raises(NotThereError):
        await api.read(PODS, "nobody")
    with pytest.raises(RejectedError):
        await api.create(PODS.path(api.namespace), {"metadata": {"name": "No Name!"}, "spec": {}})
