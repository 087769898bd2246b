"""Going back to the pod template that was in force before the present one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gatemesh_executor.backends.base import BackendUnavailableError, RollBackNotOfferedError
from gatemesh_executor.backends.kubernetes.api import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STRATEGIC_MERGE,
    ConflictError,
    KubeApi,
    NotThereError,
    Object,
)
from gatemesh_executor.backends.kubernetes.owners import Slot, annotation
from gatemesh_executor.pace import Pace

REVISION = "deployment.kubernetes.io/revision"
TEMPLATE_HASH = "pod-template-hash"
RETURNED_TO = "gatemesh.io/rolled-back-to"
"""Annotation of an owner: the revision that it was rolled back to."""
TRIES = 5
SETTLE_S = 5.0
POLL_S = 0.1


@dataclass(frozen=True)
class Revision:
    """One pod template that an owner has had."""

    name: str
    number: int
    template: Any
    """As a patch that replaces what is there."""


async def roll_back(api: KubeApi, slot: Slot, pace: Pace) -> str:
    """Give the instance's owner its previous pod template; return the name of that revision.

    All instances of the owner follow, as its update strategy says. An owner that was rolled back
    goes no further back before it has got another template.

    Raises:
        RollBackNotOfferedError: there is no earlier revision, or no owner any more.
        BackendUnavailableError: the platform did not answer; nothing is known to have changed.
    """
    for _ in range(TRIES):
        try:
            owner = await settled_owner(api, slot, pace)
            found = await revisions(api, slot, owner)
            now = present(found, slot, owner)
            if annotation(owner, RETURNED_TO) == now.name:
                return now.name
            wanted = previous(found, now)
            patch = patch_to(wanted, owner)
            await api.change(slot.resource, slot.owner, patch, STRATEGIC_MERGE)
        except ConflictError:
            continue
        except NotThereError as error:
            raise RollBackNotOfferedError(f"{slot.owner} is gone") from error
        return wanted.name
    raise BackendUnavailableError(f"{slot.owner} keeps changing")


async def settled_owner(api: KubeApi, slot: Slot, pace: Pace) -> Object:
    """Return the owner once its controller has taken in the last change.

    Raises:
        BackendUnavailableError: it takes too long.
    """
    deadline = pace.now() + SETTLE_S
    while True:
        owner = await api.read(slot.resource, slot.owner)
        if (owner.get("status") or {}).get("observedGeneration") == owner["metadata"]["generation"]:
            return owner
        if pace.now() >= deadline:
            raise BackendUnavailableError(f"{slot.owner} is about to change")
        await pace.sleep(POLL_S)


async def revisions(api: KubeApi, slot: Slot, owner: Object) -> list[Revision]:
    """Return the templates that the owner has had, the present one among them."""
    resource = REPLICA_SETS if slot.resource is DEPLOYMENTS else CONTROLLER_REVISIONS
    listing = await api.find(resource, selector_of(owner))
    uid = owner["metadata"]["uid"]
    read = of_replica_set if slot.resource is DEPLOYMENTS else of_controller_revision
    return [read(item) for item in listing.items if is_owned(item, uid)]


def selector_of(owner: Object) -> str:
    """Return the owner's own selector as a query, as far as it names labels."""
    labels = owner["spec"]["selector"].get("matchLabels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def is_owned(item: Object, uid: str) -> bool:
    """Return True when the object belongs to the owner with this uid."""
    return any(
        reference["uid"] == uid for reference in item["metadata"].get("ownerReferences") or ()
    )


def of_replica_set(item: Object) -> Revision:
    """Return the template of a ReplicaSet, without the label that its Deployment added."""
    template = item["spec"]["template"]
    metadata = dict(template["metadata"])
    labels = metadata.get("labels") or {}
    metadata["labels"] = {name: labels[name] for name in labels if name != TEMPLATE_HASH}
    number = int(annotation(item, REVISION) or 0)
    return Revision(
        item["metadata"]["name"],
        number,
        {"$patch": "replace", "metadata": metadata, "spec": template["spec"]},
    )


def of_controller_revision(item: Object) -> Revision:
    """Return the template of a ControllerRevision, which is a patch already."""
    template = {**item["data"]["spec"]["template"], "$patch": "replace"}
    return Revision(item["metadata"]["name"], int(item["revision"]), template)


def present(found: Sequence[Revision], slot: Slot, owner: Object) -> Revision:
    """Return the revision that the owner makes its pods by.

    Raises:
        RollBackNotOfferedError: the owner does not tell.
    """
    number = int(annotation(owner, REVISION) or 0)
    name = (owner.get("status") or {}).get("updateRevision", "")
    for one in found:
        if one.number == number if slot.resource is DEPLOYMENTS else one.name == name:
            return one
    raise RollBackNotOfferedError(f"{slot.owner} does not tell its present revision")


def previous(found: Sequence[Revision], now: Revision) -> Revision:
    """Return the revision before the present one.

    Raises:
        RollBackNotOfferedError: there is none.
    """
    earlier = [one for one in found if one.number < now.number]
    if not earlier:
        raise RollBackNotOfferedError(f"{now.name} is the earliest revision that is kept")
    return max(earlier, key=lambda one: one.number)


def patch_to(wanted: Revision, owner: Object) -> Object:
    """Return the change of an owner that must not have changed meanwhile."""
    return {
        "metadata": {
            "resourceVersion": owner["metadata"]["resourceVersion"],
            "annotations": {RETURNED_TO: wanted.name},
        },
        "spec": {"template": wanted.template},
    }
