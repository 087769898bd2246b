"""Pods that a real kubelet manages, though nothing runs in them: hollow nodes."""

import pytest

from gatemesh_executor.backends.base import Ending
from gatemesh_executor.backends.kubernetes.api import STATEFUL_SETS
from gatemesh_executor.pace import Pace

from .kube_cluster import REAL, Cluster
from .kube_owners import owner_of
from .test_kube_pods import until_running

pytestmark = pytest.mark.integration

NODE_WAIT_S = 60.0


async def hollow_node(cluster: Cluster) -> None:
    """Wait until a hollow node is ready; elsewhere the test is skipped."""
    pace = Pace()
    deadline = pace.now() + NODE_WAIT_S
    while True:
        nodes = (await cluster.admin.read_path("/api/v1/nodes"))["items"]
        hollow = [one for one in nodes if one["metadata"]["name"].startswith("hollow-")]
        if not hollow:
            pytest.skip("this cluster has no hollow nodes")
        conditions = [told for one in hollow for told in one["status"]["conditions"]]
        if any(told["type"] == "Ready" and told["status"] == "True" for told in conditions):
            return
        assert pace.now() < deadline, "the hollow node did not become ready"
        await pace.sleep(0.2)


@pytest.mark.parametrize("cluster", [REAL], indirect=True)
async def test_a_restart_through_a_real_kubelet(cluster: Cluster) -> None:
    """Scheduled, started, evicted with its grace, and made anew under the same name."""
    await hollow_node(cluster)
    item = owner_of(STATEFUL_SETS, "vllm", "steady", "", replicas=2)
    await cluster.make(STATEFUL_SETS, item)
    async with cluster.backend() as backend:
        old = await until_running(backend, "vllm-0")
        instance = backend.fleet["vllm-0"]
        assert await backend.stop(instance, old, 1.0) in (Ending.LEFT, Ending.KILLED)
        await backend.start(instance)
        new = await until_running(backend, "vllm-0", old)
        assert await backend.stop(instance, old, 1.0) is Ending.ABSENT
        assert await until_running(backend, "vllm-0") == new
