"""What every pod of the manifests keeps to."""

import pytest

from .rendered import SECRETS, Object, covers, name_of, of_kind, our_service, pods

CAPABILITIES = {"drop": ["ALL"]}


def test_nothing_runs_as_root(items: list[Object]) -> None:
    """Also not where an image would."""
    for pod in pods(items):
        context = pod.spec["securityContext"]
        assert context["runAsNonRoot"] is True, pod.name
        assert context["runAsUser"] == context["fsGroup"] > 0, pod.name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, pod.name


def test_no_container_can_change_its_files_or_gain_rights(items: list[Object]) -> None:
    """What it must write lies in volumes."""
    for pod in pods(items):
        for container in pod.containers:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, pod.name
            assert context["allowPrivilegeEscalation"] is False, pod.name
            assert context["capabilities"] == CAPABILITIES, pod.name


def test_every_container_has_its_share_and_no_more(items: list[Object]) -> None:
    """A leak ends one pod, not a node."""
    for pod in pods(items):
        for container in pod.containers:
            share = container["resources"]
            assert {"cpu", "memory"} <= set(share["requests"]), pod.name
            assert {"cpu", "memory"} <= set(share["limits"]), pod.name


def test_what_runs_for_good_is_probed(items: list[Object]) -> None:
    """Engines have no liveness probe: restarting them is the mesh's business."""
    for pod in pods(items):
        if pod.owner["kind"] == "Job":
            continue
        for container in pod.spec["containers"]:
            wanted = {"startupProbe", "readinessProbe"}
            wanted |= set() if container["name"] == "engine" else {"livenessProbe"}
            found = {name for name in container if name.endswith("Probe")}
            assert found == wanted, f"{pod.name}: {container['name']}"


def test_only_the_executor_has_a_token(items: list[Object]) -> None:
    """Nobody else has anything to ask the API server."""
    for pod in pods(items):
        wanted = pod.labels.get("app.kubernetes.io/component") == "executor"
        assert pod.spec["automountServiceAccountToken"] is wanted, pod.name


def test_only_the_executor_has_rights(items: list[Object]) -> None:
    """One Role of one namespace, bound to one account there."""
    assert of_kind(items, "ClusterRole", "ClusterRoleBinding") == []
    for binding in of_kind(items, "RoleBinding"):
        [subject] = binding["subjects"]
        assert subject["name"] == binding["roleRef"]["name"] == "gatemesh-executor"
        assert subject["namespace"] == binding["metadata"]["namespace"]
    accounts = {name_of(one) for one in of_kind(items, "ServiceAccount")}
    used = {
        pod.spec["serviceAccountName"] for pod in pods(items) if "serviceAccountName" in pod.spec
    }
    assert used == accounts


def test_no_service_sets_variables_of_ours(items: list[Object]) -> None:
    """The Service gatemesh-agent would set GATEMESH_AGENT_PORT to an address, and end the agent."""
    for pod in pods(items):
        assert pod.spec["enableServiceLinks"] is False, pod.name


def test_secrets_are_files_that_the_entry_point_reads(items: list[Object]) -> None:
    """A variable would show in `kubectl describe`; a command would pass over the entry point."""
    for pod in pods(items):
        for container in pod.containers:
            told = container.get("env", [])
            assert not [one for one in told if "secretKeyRef" in one.get("valueFrom", {})]
            assert not [one for one in container.get("envFrom", []) if "secretRef" in one]
            if our_service(container):
                assert "command" not in container, pod.name


def test_engines_do_not_see_the_agents_secrets(items: list[Object]) -> None:
    """They share a pod with a sidecar, not its files."""
    for pod in pods(items):
        for container in pod.containers:
            if container["name"] == "engine":
                assert SECRETS not in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("part", ["agent", "health_manager", "shadow"])
def test_a_drain_of_nodes_leaves_some(part: str, items: list[Object]) -> None:
    """A budget for each part of which there may be several, over the pods that there are."""
    budgets = [one["spec"] for one in of_kind(items, "PodDisruptionBudget")]
    for pod in pods(items):
        if pod.part == part:
            about = [one for one in budgets if covers(one["selector"], pod.labels)]
            assert [one["maxUnavailable"] for one in about] == [1]
