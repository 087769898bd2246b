"""The executor and the broker know what the manifests say about engines and queues."""

import re
from copy import deepcopy
from typing import Any

import pytest

from gatemesh_common.broker import SAMPLES, VERDICTS, WORK_QUEUES, shard_queue
from gatemesh_executor.backends.kubernetes import owners
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Resource

from .conftest import Render
from .rendered import (
    DEV,
    GATEWAY,
    POOL,
    PRODUCTION,
    SIDECAR,
    STATEFUL_SET,
    Object,
    name_of,
    of_kind,
    pods,
)

KINDS = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}
INSTANCES = {
    GATEWAY: {"vllm-a", "vllm-b"},
    SIDECAR: {"vllm-a", "vllm-b"},
    STATEFUL_SET: {"vllm-0", "vllm-1"},
    DEV: {"sim-0", "sim-1", "sim-2"},
}


def owners_of(items: list[Object]) -> list[tuple[Object, Resource]]:
    """Return what the executor takes for owners of instances."""
    found = of_kind(items, *KINDS)
    return [(one, KINDS[one["kind"]]) for one in found if POOL in one["metadata"]["labels"]]


@pytest.mark.parametrize("name", INSTANCES)
def test_the_executor_takes_the_examples(name: str, rendering: Render) -> None:
    """Who copies one is not sent back by the executor's start."""
    found = owners_of(rendering(name))
    assert [fault for one, kind in found for fault in owners.owner_faults(one, kind)] == []
    slots = [slot for one, kind in found for slot in owners.slots(one, kind)]
    assert {slot.instance.instance_id for slot in slots} == INSTANCES[name]
    assert {slot.instance.pool for slot in slots} == {"default"}
    for slot in slots:
        assert slot.instance.model_version != "unknown"


@pytest.mark.parametrize("name", INSTANCES)
def test_addresses_of_instances_reach_them_out_of_rotation(name: str, rendering: Render) -> None:
    """Probes prove an instance before it serves."""
    items = rendering(name)
    services = {name_of(one): one["spec"] for one in of_kind(items, "Service")}
    for one, kind in owners_of(items):
        for slot in owners.slots(one, kind):
            *_, service, namespace, _ = slot.instance.base_url.removeprefix("http://").split(".")
            assert services[service]["publishNotReadyAddresses"] is True
            assert namespace == one["metadata"]["namespace"]
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert services[service]["selector"].items() <= labels.items()
            assert slot.service is None or slot.service in services


def test_a_service_of_one_instance_leads_to_no_other(rendering: Render) -> None:
    """A verdict would be about the wrong engine."""
    items = rendering(GATEWAY)
    for service in of_kind(items, "Service"):
        found = [
            pod for pod in pods(items) if service["spec"]["selector"].items() <= pod.labels.items()
        ]
        assert [name_of(pod.owner) for pod in found] == [name_of(service)]


def scaled(items: list[Object], name: str) -> dict[str, Any]:
    """Return the specification of a ScaledObject."""
    [found] = [one for one in of_kind(items, "ScaledObject") if name_of(one) == name]
    return dict(deepcopy(found["spec"]))


def test_scaling_reads_queues_that_there_are(rendering: Render) -> None:
    """A name that is wrong reads as an empty queue, and nothing is ever scaled."""
    items = rendering(PRODUCTION)
    [trigger] = scaled(items, "gatemesh-shadow")["triggers"]
    assert trigger["metadata"]["queueName"] == SAMPLES.name
    [trigger] = scaled(items, "gatemesh-health-manager")["triggers"]
    pattern = re.compile(trigger["metadata"]["queueName"])
    counted = {queue.name for queue in WORK_QUEUES if pattern.search(queue.name)}
    assert counted == {VERDICTS.name}
    assert pattern.search(shard_queue(3).name)


def test_there_are_no_more_managers_than_shards(rendering: Render) -> None:
    """The rest would wait for nothing."""
    items = rendering(PRODUCTION)
    [manager] = [one for one in of_kind(items, "Deployment") if "health-manager" in name_of(one)]
    [container] = manager["spec"]["template"]["spec"]["containers"]
    told = {one["name"]: one["value"] for one in container["env"]}
    shards = int(told["GATEMESH_HEALTH_MANAGER_VERDICT_SHARDS"])
    assert scaled(items, "gatemesh-health-manager")["maxReplicaCount"] == shards


def test_what_is_scaled_has_no_number_of_its_own(rendering: Render) -> None:
    """Each `kubectl apply` would undo the scaling."""
    items = rendering(PRODUCTION)
    targets = {one["spec"]["scaleTargetRef"]["name"] for one in of_kind(items, "ScaledObject")}
    numbers = {name_of(one): one["spec"].get("replicas") for one in of_kind(items, "Deployment")}
    assert {name: numbers[name] for name in targets} == dict.fromkeys(targets)
