"""What may happen to the Kubernetes API that an engine is acted on by."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.contract.executor.kube_cluster import (
    SERVICES,
    Cluster,
    fake_cluster,
    kubeconfig_for,
)
from tests.contract.executor.kube_owners import owner_of
from tests.contract.executor.kube_server import FakeKube
from tests.faults.acting import (
    VICTIM,
    absent,
    accuse,
    ask_for,
    engine_of,
    is_repaired,
    running,
)
from tests.faults.isolation import drained_in_order, told_not_isolated
from tests.faults.program_node import ProgramNode
from tests.faults.scenario import Play

from gatemesh_executor.backends.kubernetes.api import STATEFUL_SETS, Object
from gatemesh_executor.backends.kubernetes.owners import BASE_URL, MODEL_VERSION, SERVICE, SERVING
from gatemesh_mesh.plan import POOL

EXECUTOR = "executor"
NODE = "node-of-programs"
FRONT = "front"
NEWER_VERSION = "sim@newer"
UNAVAILABLE = "backend_unavailable"
FAULTS = (
    ("patch", "pods", 500),
    ("patch", "pods", 429),
    ("patch", "pods", 409),
    ("get", "endpoints", 503),
    ("create", "pods/eviction", 429),
    ("create", "pods/eviction", 500),
    ("create", "pods/eviction", 409),
    ("watch", "pods", 410),
    ("list", "pods", 500),
    ("watch", "pods", 429),
)
"""Verb, resource and status of what is answered wrongly, each once."""


async def refuse_calls(it: Play) -> None:
    """Each call that a repair needs is refused, and watches are cut and expired."""
    async with as_pod(it) as cluster:
        fake = fake_of(cluster)
        fake.faults += FAULTS
        cluster.proxy.sever()
        await accuse(it)
        await is_repaired(it)
        await it.reach(lambda: fake.faults == [], "every refusal was met")
        assert drained_in_order(it)
        await it.reach(lambda: is_served(fake), "the Service has the pod again")


async def lose_api(it: Play) -> None:
    """No connection to the API server lives until the drain has failed."""
    async with as_pod(it) as cluster:
        cluster.proxy.go_away()
        await accuse(it)
        await told_not_isolated(it, "drain", UNAVAILABLE)
        cluster.proxy.come_back()
        await is_repaired(it)
        await it.reach(lambda: is_served(fake_of(cluster)), "the Service has the pod again")


async def roll_out_and_back(it: Play) -> None:
    """The pod's owner gets another version, and an operator has it rolled back."""
    before = engine_of(it, VICTIM).model_version
    async with as_pod(it) as cluster:
        newer = stateful_set(it, NEWER_VERSION)["spec"]["template"]
        name = VICTIM.rpartition("-")[0]
        await cluster.admin.change(STATEFUL_SETS, name, {"spec": {"template": newer}})
        await serves(it, NEWER_VERSION)
        await ask_for(it, "roll_back", VICTIM, reason="the new version writes nonsense")
        await serves(it, before)
        await it.reach(lambda: is_served(fake_of(cluster)), "the Service has the pod again")
        owner = await cluster.admin.read(STATEFUL_SETS, name)
        assert owner["spec"]["template"]["metadata"]["annotations"][MODEL_VERSION] == before


async def serves(it: Play, version: str) -> None:
    """Wait until the victim serves with a version, and everything is at rest."""
    query = """SELECT count(*) FROM instance_health_v1 WHERE instance_id = %(instance)s
        AND model_version = %(version)s AND in_rotation"""
    await it.reach(
        lambda: it.count(query, instance=VICTIM, version=version) == 1, f"it serves {version}", 90.0
    )
    await it.site.fleet.settled()


async def rolled_back_once(it: Play) -> None:
    """One command did it, and it came to its end; no other instance was touched."""
    query = """SELECT count(*) FROM commands_v1 WHERE issued_at >= %(since)s
        AND action = 'roll_back' AND status = 'succeeded'"""
    assert it.count(query) == 1
    # The new version's roll-out is an exit that nobody had asked the mesh for.
    assert it.commands(VICTIM) in (["eject", "roll_back"], ["restart", "eject", "roll_back"])
    assert it.commands() == it.commands(VICTIM)


@asynccontextmanager
async def as_pod(it: Play) -> AsyncIterator[Cluster]:
    """Have the victim be a pod of a small API server, and the executor act there."""
    folder = it.site.plan.folder.root
    async with fake_cluster(folder) as cluster:
        async with absent(it, EXECUTOR), node_of(it, cluster):
            await cluster.make(SERVICES, FRONT_SERVICE)
            await cluster.make(STATEFUL_SETS, stateful_set(it))
            with running(it, EXECUTOR, **executor_settings(cluster, folder)):
                await it.reach(lambda: is_served(fake_of(cluster)), "the pod is in rotation")
                await it.site.fleet.settled()
                yield cluster
            lives = lives_of(it)
        # To the stack's own executor that life is a new one, which the next scenario must not see.
        await it.reach(lambda: lives_of(it) > lives, "the stack's executor has seen the program")


def lives_of(it: Play) -> int:
    """Return how many lives of the victim are known."""
    query = "SELECT incarnation FROM instance_health_v1 WHERE instance_id = %(instance)s"
    return it.count(query, instance=VICTIM)


FRONT_SERVICE: Object = {
    "metadata": {"name": FRONT},
    "spec": {"selector": {SERVING: "true"}, "ports": [{"port": 8000}]},
}


def stateful_set(it: Play, version: str | None = None) -> Object:
    """Return an owner whose only pod is called like the victim, and runs its version or another."""
    engine = engine_of(it, VICTIM)
    name, _, number = VICTIM.rpartition("-")
    notes = {BASE_URL: engine.base_url, SERVICE: FRONT}
    version = version or engine.model_version
    item = owner_of(STATEFUL_SETS, name, "steady", NODE, notes=notes, version=version, pool=POOL)
    item["spec"]["ordinals"] = {"start": int(number)}
    return item


@asynccontextmanager
async def node_of(it: Play, cluster: Cluster) -> AsyncIterator[None]:
    """Run the node of the pods."""
    node = ProgramNode(cluster.admin, NODE, it.site.fleet.stack.supervision)
    caring = asyncio.create_task(node.run())
    try:
        yield
    finally:
        caring.cancel()
        await asyncio.gather(caring, return_exceptions=True)


def executor_settings(cluster: Cluster, folder: Path) -> dict[str, str]:
    """Return the settings of an executor that acts on the pods."""
    kubeconfig = kubeconfig_for(cluster.proxy.url, {"token": "executor"}, folder)
    return {
        "GATEMESH_EXECUTOR_BACKEND": "kubernetes",
        "GATEMESH_EXECUTOR_KUBECONFIG": str(kubeconfig),
        "GATEMESH_EXECUTOR_NAMESPACE": cluster.admin.namespace,
    }


def fake_of(cluster: Cluster) -> FakeKube:
    """Return the API server."""
    assert cluster.fake is not None
    return cluster.fake


def is_served(fake: FakeKube) -> bool:
    """Tell whether the Service sends requests to the present pod of the victim."""
    pod = fake.store.of("pods").get(VICTIM)
    found = fake.store.of("endpoints").get(FRONT) or {}
    uids = {
        address["targetRef"]["uid"]
        for subset in found.get("subsets") or ()
        for address in subset.get("addresses") or ()
    }
    return pod is not None and pod["metadata"]["uid"] in uids
