"""Which instances the owners of pods stand for, and what they must promise (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gatemesh_common.invalid import words_of
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Object, Resource
from gatemesh_executor.backends.kubernetes.pods import engine_container
from gatemesh_executor.instances import Instance

POOL = "gatemesh.io/pool"
"""Label of owners and pods: the pool of their instances."""
SERVING = "gatemesh.io/serving"
"""Label of pods that are in rotation; a Service selects by it."""
BASE_URL = "gatemesh.io/base-url"
"""Annotation of owners: the instance's address; `{instance}` stands for its id."""
MODEL_VERSION = "gatemesh.io/model-version"
"""Annotation of pod templates."""
SERVICE = "gatemesh.io/service"
"""Annotation of owners: the Service whose endpoints confirm that an instance is out."""
AFTER_STOP = "gatemesh.io/after-stop"
"""Annotation of owners: `respawn` or `stay`."""
STAY, RESPAWN = "stay", "respawn"
FALLBACK_PORT = 8000


@dataclass(frozen=True)
class Slot:
    """One instance's place at its owner."""

    instance: Instance
    resource: Resource
    """The kind of its owner."""
    owner: str
    stays: bool
    """A stop scales the owner to zero; otherwise the owner makes the next pod by itself."""
    service: str | None


def annotation(owner: Object, name: str) -> str | None:
    """Return one annotation of an object."""
    found = (owner["metadata"].get("annotations") or {}).get(name)
    return None if found is None else str(found)


def slots(owner: Object, resource: Resource) -> tuple[Slot, ...]:
    """Return the instances of an owner; none when it breaks a promise."""
    if owner_faults(owner, resource):
        return ()
    return tuple(_slot(owner, resource, name) for name in _instance_ids(owner, resource))


def owner_faults(owner: Object, resource: Resource) -> list[str]:
    """Say what must be changed before an owner's pods can be acted on."""
    where = f"{resource.plural}/{owner['metadata']['name']}"
    template = owner["spec"]["template"]
    labels = template["metadata"].get("labels") or {}
    faults = []
    if labels.get(POOL) != _pool(owner):
        faults.append(f"the label {POOL} of the pod template must be {_pool(owner)!r} too")
    if SERVING in labels:
        faults.append(
            f"the pod template must not have the label {SERVING}: a new pod would be in rotation "
            "before it has proven itself"
        )
    faults += _stop_faults(owner)
    if resource is DEPLOYMENTS:
        faults += _deployment_faults(owner)
    return [f"{where}: {fault}" for fault in faults or _address_faults(owner, resource)]


def _stop_faults(owner: Object) -> list[str]:
    after_stop = annotation(owner, AFTER_STOP) or RESPAWN
    if after_stop not in (STAY, RESPAWN):
        return [f"the annotation {AFTER_STOP} must be {STAY!r} or {RESPAWN!r}"]
    if after_stop == STAY and _replicas(owner) > 1:
        return [f"with {AFTER_STOP}: {STAY} it must not have more than one replica"]
    return []


def _deployment_faults(owner: Object) -> list[str]:
    faults = []
    if _replicas(owner) > 1:
        faults.append(
            "pods of a Deployment have no name that outlives them: use a StatefulSet, or one "
            "Deployment with one replica per instance"
        )
    if (owner["spec"].get("strategy") or {}).get("type") != "Recreate":
        faults.append("strategy.type must be Recreate: else two lives of one instance run at once")
    return faults


def _address_faults(owner: Object, resource: Resource) -> list[str]:
    try:
        for name in _instance_ids(owner, resource):
            _instance(owner, resource, name)
    except ValidationError as error:
        return [words_of(error)]
    return []


def instance_id_of(pod: Object) -> str | None:
    """Return the instance that a pod is a life of; None when nobody owns it.

    A StatefulSet gives its pods names that stay. A Deployment with one replica is known by its own.
    """
    references = pod["metadata"].get("ownerReferences") or ()
    owner = next((found for found in references if found.get("controller")), None)
    if owner is None:
        return None
    if owner["kind"] == "StatefulSet":
        return str(pod["metadata"]["name"])
    if owner["kind"] != "ReplicaSet":
        return None
    # A Deployment names its ReplicaSets after itself and the hash of the template.
    hashed = (pod["metadata"].get("labels") or {}).get("pod-template-hash", "")
    return str(owner["name"]).removesuffix(f"-{hashed}")


def model_version_of(template: Object) -> str:
    """Return the model version that a pod or template says it serves."""
    return annotation(template, MODEL_VERSION) or "unknown"


def _instance_ids(owner: Object, resource: Resource) -> list[str]:
    name = owner["metadata"]["name"]
    if resource is DEPLOYMENTS:
        return [name]
    stays = annotation(owner, AFTER_STOP) == STAY
    count = 1 if stays else _replicas(owner)
    start = (owner["spec"].get("ordinals") or {}).get("start", 0)
    return [f"{name}-{ordinal}" for ordinal in range(start, start + count)]


def _slot(owner: Object, resource: Resource, instance_id: str) -> Slot:
    return Slot(
        _instance(owner, resource, instance_id),
        resource,
        owner["metadata"]["name"],
        annotation(owner, AFTER_STOP) == STAY,
        annotation(owner, SERVICE),
    )


def _instance(owner: Object, resource: Resource, instance_id: str) -> Instance:
    return Instance(
        instance_id=instance_id,
        pool=_pool(owner),
        base_url=_base_url(owner, resource, instance_id),
        program=f"{resource.plural}/{owner['metadata']['name']}/{instance_id}",
        model_version=model_version_of(owner["spec"]["template"]),
    )


def _base_url(owner: Object, resource: Resource, instance_id: str) -> str:
    """Return the address by annotation, or by the names that the cluster's DNS knows."""
    given = annotation(owner, BASE_URL)
    if given is not None:
        return given.replace("{instance}", instance_id)
    metadata = owner["metadata"]
    host = f"{metadata['name']}.{metadata['namespace']}.svc"
    if resource is STATEFUL_SETS:
        host = f"{instance_id}.{owner['spec']['serviceName']}.{metadata['namespace']}.svc"
    return f"http://{host}:{_port(owner['spec']['template'])}"


def _port(template: Mapping[str, Any]) -> int:
    container = engine_container(template["spec"], template["metadata"].get("annotations"))
    ports = container.get("ports") or []
    named = [port for port in ports if port.get("name") == "http"]
    first = next(iter(named or ports), {"containerPort": FALLBACK_PORT})
    return int(first["containerPort"])


def _pool(owner: Object) -> str:
    return str(owner["metadata"]["labels"][POOL])


def _replicas(owner: Object) -> int:
    return int(owner["spec"].get("replicas", 1))
