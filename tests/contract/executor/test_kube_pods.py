"""Pods as instances: discovery, identity, budgets, lives that nobody ordered."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import Ending, Observation, Phase, StartFailedError
from gatemesh_executor.backends.kubernetes.api import (
    DEPLOYMENTS,
    PODS,
    STATEFUL_SETS,
    EvictionRefusedError,
)
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.kubernetes.owners import AFTER_STOP, STAY

from .kube_cluster import BUDGETS, Cluster
from .kube_owners import owner_of

pytestmark = pytest.mark.integration


@pytest.fixture
async def backend(cluster: Cluster) -> AsyncIterator[KubernetesBackend]:
    """Give a backend that follows a StatefulSet of two engines, both running."""
    item = owner_of(STATEFUL_SETS, "vllm", "steady", cluster.node.name, replicas=2)
    await cluster.make(STATEFUL_SETS, item)
    async with cluster.backend() as found:
        for name in ("vllm-0", "vllm-1"):
            await until_running(found, name)
        yield found


async def until_running(backend: KubernetesBackend, name: str, not_life: str | None = None) -> str:
    """Return the life of an instance, another one than the named."""

    def life() -> str | None:
        found = backend.fleet.observations().get(name, Observation(Phase.STOPPED))
        return found.life_id if found.phase is Phase.RUNNING else None

    assert await backend.fleet.news.until(lambda: life() not in (None, not_life), 30.0)
    return str(life())


async def test_instances_are_discovered_by_label(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """Nobody keeps a list; the agents get an address that outlives the pods."""
    namespace = cluster.admin.namespace
    found = backend.fleet["vllm-1"]
    assert set(backend.fleet) == {"vllm-0", "vllm-1"}
    assert (found.pool, found.model_version) == ("chat", "m@1")
    assert found.base_url == f"http://vllm-1.engines.{namespace}.svc:8000"


async def test_an_instance_appears_and_disappears_with_its_owner(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """Scaled down, it is told as stopped, not forgotten."""
    await cluster.admin.change(STATEFUL_SETS, "vllm", {"spec": {"replicas": 3}}, sub="scale")
    await until_running(backend, "vllm-2")
    await cluster.admin.change(STATEFUL_SETS, "vllm", {"spec": {"replicas": 2}}, sub="scale")
    stopped = Observation(Phase.STOPPED)
    assert await backend.fleet.news.until(
        lambda: backend.fleet.observations()["vllm-2"] == stopped, 30.0
    )
    with pytest.raises(StartFailedError, match="does not want"):
        await backend.start(backend.fleet["vllm-2"])


async def test_a_restart_keeps_the_identity(backend: KubernetesBackend) -> None:
    """The owner makes the next pod by itself, of the same name, with another life."""
    instance = backend.fleet["vllm-0"]
    old = await until_running(backend, "vllm-0")
    untouched = await until_running(backend, "vllm-1")
    assert await backend.stop(instance, old, 20.0) is Ending.LEFT
    await backend.start(instance)
    assert await until_running(backend, "vllm-0", old) != old
    assert await until_running(backend, "vllm-1") == untouched


async def test_a_late_stop_leaves_the_next_life_alone(backend: KubernetesBackend) -> None:
    """The name is the same, the life is not."""
    old = await until_running(backend, "vllm-0")
    await backend.stop(backend.fleet["vllm-0"], old, 20.0)
    new = await until_running(backend, "vllm-0", old)
    assert await backend.stop(backend.fleet["vllm-0"], old, 20.0) is Ending.ABSENT
    assert await until_running(backend, "vllm-0") == new


async def test_a_container_that_runs_again_is_another_life(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """The kubelet starts a dead engine in the same pod; the manager must learn of it."""
    old = await until_running(backend, "vllm-0")
    await cluster.node.crash("vllm-0")
    await cluster.node.run_again("vllm-0")
    new = await until_running(backend, "vllm-0", old)
    assert new == f"{old}/1"
    assert await backend.stop(backend.fleet["vllm-0"], old, 1.0) is Ending.ABSENT


async def test_a_budget_is_kept(cluster: Cluster, backend: KubernetesBackend) -> None:
    """Its owner said how many must serve; the command is tried again."""
    budget = await spend_budget(cluster)
    life = await until_running(backend, "vllm-0")
    with pytest.raises(EvictionRefusedError) as caught:
        await backend.stop(backend.fleet["vllm-0"], life, 20.0)
    assert caught.value.retryable
    assert await until_running(backend, "vllm-0") == life
    await cluster.admin.remove(BUDGETS, budget, {})
    assert await stop_when_allowed(backend, life) is Ending.LEFT


async def test_a_budget_is_overruled_where_the_settings_say_so(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """An engine that answers garbage may matter more than the count."""
    await spend_budget(cluster)
    life = await until_running(backend, "vllm-0")
    ruthless = KubernetesBackend(backend.api, backend.fleet, delete_after_s=0.0)
    assert await ruthless.stop(backend.fleet["vllm-0"], life, 20.0) is Ending.LEFT


async def spend_budget(cluster: Cluster) -> str:
    """Forbid every eviction and wait until the cluster has taken that in."""
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "vllm"}}}
    version = "policy/v1beta1"
    item = {"apiVersion": version, "metadata": {"name": "two"}, "spec": spec}
    await cluster.make(BUDGETS, {**item, "kind": "PodDisruptionBudget"})
    return "two"


async def stop_when_allowed(backend: KubernetesBackend, life: str) -> Ending:
    """Repeat a stop as the playbook does."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await backend.stop(backend.fleet["vllm-0"], life, 20.0)
            except EvictionRefusedError:
                await asyncio.sleep(0.1)


async def test_a_pod_that_changes_meanwhile_is_read_again(
    cluster: Cluster, backend: KubernetesBackend
) -> None:
    """An eviction names the version it is about; a conflict is no failure."""
    life = await until_running(backend, "vllm-0")
    scribbling = asyncio.create_task(scribble(cluster))
    try:
        assert await backend.stop(backend.fleet["vllm-0"], life, 20.0) is Ending.LEFT
    finally:
        scribbling.cancel()


async def scribble(cluster: Cluster) -> None:
    """Change a pod again and again."""
    for number in range(50):
        note = {"metadata": {"annotations": {"note": str(number)}}}
        await cluster.admin.change(PODS, "vllm-0", note)


async def test_owners_that_break_promises_are_named(cluster: Cluster) -> None:
    """The operator reads owner and field, for all of them at once."""
    twin = owner_of(DEPLOYMENTS, "twin", "steady", cluster.node.name, replicas=2)
    twin["spec"]["strategy"] = {"type": "RollingUpdate"}
    await cluster.make(DEPLOYMENTS, twin)
    notes = {AFTER_STOP: STAY}
    wide = owner_of(STATEFUL_SETS, "wide", "steady", cluster.node.name, replicas=2, notes=notes)
    await cluster.make(STATEFUL_SETS, wide)
    async with cluster.backend() as backend:
        with pytest.raises(SettingsError) as caught:
            await backend.verify()
        assert set(backend.fleet) == set()
    for part in ("deployments/twin", "Recreate", "StatefulSet", "statefulsets/wide", AFTER_STOP):
        assert part in str(caught.value)


async def test_good_owners_and_rights_are_accepted(backend: KubernetesBackend) -> None:
    """On the real API server: our manifest allows all that is asked for at the start."""
    await backend.verify()
