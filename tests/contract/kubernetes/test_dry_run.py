"""A real API server takes every object, without keeping it."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest

from gatemesh_mesh.kube_lab import KUBECONFIG_VARIABLE

from .conftest import Render
from .rendered import NAMES, Object

pytestmark = [
    pytest.mark.kube,
    pytest.mark.integration,
    pytest.mark.skipif(
        not os.environ.get(KUBECONFIG_VARIABLE),
        reason=f"{KUBECONFIG_VARIABLE} names no cluster; ./mesh test --kube does",
    ),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

Kubectl = Callable[..., str]


def kubectl(*words: str, given: str = "") -> str:
    """Run kubectl against the named cluster and return what it prints."""
    environment = {**os.environ, "KUBECONFIG": os.environ[KUBECONFIG_VARIABLE]}
    result = subprocess.run(
        ("kubectl", *words),
        input=given,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Give what the cluster knows, as `apiVersion/kind`: an old one lacks policy/v1."""
    versions = kubectl("api-versions").split()
    found: set[str] = set()
    for version in versions:
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        listed = json.loads(kubectl("get", "--raw", path))
        found |= {f"{version}/{one['kind']}" for one in listed["resources"]}
    return found


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """Give a namespace that is there: a dry run makes none."""
    name = f"gatemesh-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def placed(item: Object, namespace: str, known: set[str]) -> Object | None:
    """Return an object as this cluster can take it; None for a kind that it does not know."""
    version, kind = item["apiVersion"], item["kind"]
    if kind == "Namespace":
        return None
    if f"{version}/{kind}" not in known and kind == "PodDisruptionBudget":
        version = "policy/v1beta1"
    if f"{version}/{kind}" not in known:
        return None
    return {**item, "apiVersion": version, "metadata": {**item["metadata"], "namespace": namespace}}


@pytest.mark.parametrize("name", NAMES)
def test_the_api_server_takes_it(
    name: str, rendering: Render, namespace: str, known: set[str]
) -> None:
    """Defaults, cross-checks and limits that no schema knows."""
    items = rendering(name)
    taken = [one for item in items if (one := placed(item, namespace, known))]
    left = {item["kind"] for item in items} - {one["kind"] for one in taken}
    of_operators = {"PrometheusRule", "ScaledObject", "ServiceMonitor", "TriggerAuthentication"}
    assert left <= {"Namespace", *of_operators}
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": taken})
    told = kubectl("apply", "--dry-run=server", "-f", "-", given=listed)
    assert told.count("(server dry run)") == len(taken)
