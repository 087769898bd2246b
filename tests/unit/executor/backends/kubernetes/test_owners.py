"""Which instances owners stand for, and what they must promise."""

from typing import Any

import pytest

from gatemesh_executor.backends.kubernetes import owners
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Resource

from .conftest import owner_of, pod_of


def noted(owner: dict[str, Any], **notes: str) -> dict[str, Any]:
    """Return the owner with annotations, `_` for `-`."""
    named = {f"gatemesh.io/{name.replace('_', '-')}": value for name, value in notes.items()}
    owner["metadata"]["annotations"] |= named
    return owner


def test_a_stateful_set_has_an_instance_per_replica() -> None:
    """Named and addressed as its pods are, whether or not they exist now."""
    found = owners.slots(owner_of(), STATEFUL_SETS)
    assert [slot.instance.instance_id for slot in found] == ["vllm-0", "vllm-1"]
    assert found[1].instance.base_url == "http://vllm-1.engines.mesh.svc:9000"
    assert (found[0].instance.pool, found[0].owner, found[0].stays) == ("chat", "vllm", False)


def test_ordinals_may_begin_later() -> None:
    """Kubernetes lets them, for moving a set between clusters."""
    found = owners.slots(owner_of(ordinals={"start": 5}), STATEFUL_SETS)
    assert [slot.instance.instance_id for slot in found] == ["vllm-5", "vllm-6"]


def test_a_deployment_is_one_instance() -> None:
    """Its own name outlives its pods."""
    [slot] = owners.slots(owner_of(replicas=1), DEPLOYMENTS)
    assert slot.instance.instance_id == "vllm"
    assert slot.instance.base_url == "http://vllm.mesh.svc:9000"


def test_one_that_stays_stopped_is_known_at_zero() -> None:
    """A stopped instance is observed as stopped."""
    [slot] = owners.slots(noted(owner_of(replicas=0), after_stop="stay"), STATEFUL_SETS)
    assert (slot.instance.instance_id, slot.stays) == ("vllm-0", True)


def test_an_address_of_ones_own() -> None:
    """Agents outside of the cluster cannot use its names."""
    owner = noted(owner_of(), base_url="http://{instance}.engines.example:80")
    assert owners.slots(owner, STATEFUL_SETS)[0].instance.base_url == (
        "http://vllm-0.engines.example:80"
    )


@pytest.mark.parametrize(
    ("ports", "port"),
    [
        (None, 8000),
        ([{"containerPort": 1}, {"name": "http", "containerPort": 2}], 2),
        ([{"containerPort": 1}], 1),
    ],
)
def test_the_port(ports: list[dict[str, Any]] | None, port: int) -> None:
    """The one that is called http, else the first, else vLLM's."""
    owner = owner_of()
    owner["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
    assert owners.slots(owner, STATEFUL_SETS)[0].instance.base_url.endswith(f":{port}")


def unlabelled(owner: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    """Return the owner with another label on its template."""
    owner["spec"]["template"]["metadata"]["labels"][name] = value
    return owner


@pytest.mark.parametrize(
    ("owner", "resource", "words"),
    [
        (unlabelled(owner_of(), owners.POOL, "other"), STATEFUL_SETS, "'chat' too"),
        (unlabelled(owner_of(), owners.SERVING, "true"), STATEFUL_SETS, "proven itself"),
        (noted(owner_of(), after_stop="maybe"), STATEFUL_SETS, "'stay' or 'respawn'"),
        (noted(owner_of(), after_stop="stay"), STATEFUL_SETS, "more than one replica"),
        (owner_of(), DEPLOYMENTS, "use a StatefulSet"),
        (owner_of(replicas=1, strategy={}), DEPLOYMENTS, "must be Recreate"),
        (noted(owner_of(), base_url="vllm:80"), STATEFUL_SETS, "base_url"),
    ],
)
def test_a_broken_promise_is_named(owner: dict[str, Any], resource: Resource, words: str) -> None:
    """Such an owner is left alone until it is mended."""
    [fault] = owners.owner_faults(owner, resource)
    assert fault.startswith(f"{resource.plural}/vllm: ")
    assert words in fault
    assert owners.slots(owner, resource) == ()


@pytest.mark.parametrize(
    ("pod", "instance_id"),
    [
        (pod_of("vllm-1"), "vllm-1"),
        (
            pod_of(
                "a-b-5f7-x2",
                kind="ReplicaSet",
                owner="a-b-5f7",
                labels={"pod-template-hash": "5f7"},
            ),
            "a-b",
        ),
        (pod_of("j", kind="Job", owner="j"), None),
    ],
)
def test_a_pod_belongs_to_an_instance(pod: dict[str, Any], instance_id: str | None) -> None:
    """By its owner, not by what it calls itself."""
    assert owners.instance_id_of(pod) == instance_id


def test_a_pod_of_nobody() -> None:
    """It would not come back."""
    pod = pod_of()
    pod["metadata"]["ownerReferences"] = []
    assert owners.instance_id_of(pod) is None


def test_the_model_version_is_that_of_the_template() -> None:
    """Labels could not hold one with an `@`."""
    owner = owner_of()
    assert owners.model_version_of(owner["spec"]["template"]) == "unknown"
    owner["spec"]["template"]["metadata"]["annotations"] = {owners.MODEL_VERSION: "q@3"}
    assert owners.slots(owner, STATEFUL_SETS)[0].instance.model_version == "q@3"
