"""StatefulSets and Deployments of stand-in engines."""

from collections.abc import Mapping
from typing import Any

from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Resource
from gatemesh_executor.backends.kubernetes.owners import MODEL_VERSION, POOL

KIND = {STATEFUL_SETS: "StatefulSet", DEPLOYMENTS: "Deployment"}
PULLER = {"name": "gatemesh-weights", "image": "puller"}


def owner_of(
    resource: Resource,
    name: str,
    habit: str,
    node: str,
    *,
    replicas: int = 1,
    notes: Mapping[str, str] | None = None,
    version: str = "m@1",
    pulls: bool = False,
    pool: str = "chat",
) -> dict[str, Any]:
    """Return an owner whose engines have this habit; without a node they are scheduled."""
    container = {"name": "engine", "image": f"engine:{habit}", "ports": [{"containerPort": 8000}]}
    pod_spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 60,
        "containers": [container],
    }
    if node:
        pod_spec["nodeName"] = node
    if pulls:
        pod_spec["initContainers"] = [PULLER]
    template = {
        "metadata": {"labels": labels(name, pool), "annotations": {MODEL_VERSION: version}},
        "spec": pod_spec,
    }
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    if resource is STATEFUL_SETS:
        spec |= {"serviceName": "engines", "podManagementPolicy": "Parallel"}
    else:
        spec["strategy"] = {"type": "Recreate"}
    metadata = {"name": name, "labels": labels(name, pool), "annotations": dict(notes or {})}
    return {"apiVersion": "apps/v1", "kind": KIND[resource], "metadata": metadata, "spec": spec}


def labels(name: str, pool: str) -> dict[str, str]:
    """Return the labels of an owner and its pods."""
    return {"app": name, POOL: pool}
