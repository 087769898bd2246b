"""The executor as a process whose engines are pods, over a real broker and a small API server."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.contract.executor.kube_cluster import Cluster, fake_cluster, kubeconfig_for
from tests.contract.executor.kube_owners import owner_of

from gatemesh_common.messages import (
    DrainInstance,
    ReadmitInstance,
    ReplaceInstance,
    ReportOutcome,
    RestartInstance,
    RollBackInstance,
)
from gatemesh_executor.backends.kubernetes.api import PODS, STATEFUL_SETS
from gatemesh_executor.backends.kubernetes.owners import BASE_URL, SERVING

from .conftest import ExecutorProcess, Manager, until_exit

pytestmark = pytest.mark.integration


async def healthy(_: web.Request) -> web.Response:
    """Say that all is well."""
    return web.Response()


WHERE = {"instance_id": "vllm-0", "pool": "chat"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Give a cluster with one engine whose `/health` answers."""
    application = web.Application()
    application.router.add_get("/health", healthy)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    notes = {BASE_URL: f"http://127.0.0.1:{runner.addresses[0][1]}"}
    async with fake_cluster(tmp_path) as found:
        found.node.pull_delay_s = 0.3
        node = found.node.name
        item = owner_of(STATEFUL_SETS, "vllm", "steady", node, notes=notes, pulls=True)
        await found.make(STATEFUL_SETS, item)
        yield found
    await runner.cleanup()


@pytest.fixture
def executor(cluster: Cluster, tmp_path: Path, vhost_url: str) -> Iterator[ExecutorProcess]:
    """Give an executor of that cluster."""
    kubeconfig = kubeconfig_for(cluster.proxy.url, {"token": "executor"}, tmp_path)
    told = {
        "GATEMESH_AMQP_URL": vhost_url,
        "GATEMESH_EXECUTOR_BACKEND": "kubernetes",
        "GATEMESH_EXECUTOR_KUBECONFIG": str(kubeconfig),
        "GATEMESH_EXECUTOR_NAMESPACE": cluster.admin.namespace,
        "GATEMESH_EXECUTOR_ADMIN_PORT": "0",
        "GATEMESH_EXECUTOR_CONFIRM_DEADLINE_S": "0.2",
    }
    executors = ExecutorProcess({**os.environ, **told})
    try:
        yield executors
    finally:
        executors.stop()


async def test_pods_are_drained_restarted_replaced_and_put_back(
    cluster: Cluster, executor: ExecutorProcess, manager: Manager
) -> None:
    """Every command ends well, and each life is told."""
    executor.start()
    first = (await manager.observed(lambda it: it.running, "vllm-0")).life_id
    drain = await manager.order(DrainInstance, life_id=first, grace_s=5, **WHERE)
    assert (await manager.report_of(drain)).outcome is ReportOutcome.SUCCEEDED
    restart = await manager.order(RestartInstance, life_id=first, grace_s=5, **WHERE)
    restarted = await manager.report_of(restart)
    assert restarted.outcome is ReportOutcome.SUCCEEDED
    assert manager.steps_of(restart) == ["started", "ready"]
    replace = await manager.order(ReplaceInstance, life_id=restarted.life_id, grace_s=5, **WHERE)
    replaced = await manager.report_of(replace)
    assert (replaced.outcome, replaced.reason) == (ReportOutcome.SUCCEEDED, "")
    assert len({first, restarted.life_id, replaced.life_id}) == 3
    readmit = await manager.order(ReadmitInstance, life_id=replaced.life_id, **WHERE)
    assert (await manager.report_of(readmit)).outcome is ReportOutcome.SUCCEEDED
    pod = await cluster.admin.read(PODS, "vllm-0")
    assert pod["metadata"]["labels"][SERVING] == "true"


async def test_a_roll_back_brings_the_version_before(
    cluster: Cluster, executor: ExecutorProcess, manager: Manager
) -> None:
    """The next life says so itself."""
    executor.start()
    await manager.observed(lambda it: it.running, "vllm-0")
    newer = owner_of(STATEFUL_SETS, "vllm", "steady", cluster.node.name, version="m@2", pulls=True)
    patch = {"spec": {"template": newer["spec"]["template"]}}
    await cluster.admin.change(STATEFUL_SETS, "vllm", patch)
    second = await manager.observed(lambda it: it.running and it.model_version == "m@2", "vllm-0")
    back = await manager.order(RollBackInstance, life_id=second.life_id, grace_s=5, **WHERE)
    report = await manager.report_of(back)
    assert report.outcome is ReportOutcome.SUCCEEDED
    third = await manager.observed(lambda it: it.life_id == report.life_id, "vllm-0")
    assert third.model_version == "m@1"


async def test_missing_rights_end_the_start(
    cluster: Cluster, executor: ExecutorProcess, manager: Manager
) -> None:
    """With the exit code of wrong settings."""
    assert cluster.fake is not None
    cluster.fake.denied.add(("create", "pods/eviction"))
    assert await until_exit(executor.start()) == 2
    assert manager.lives("vllm-0") == []
