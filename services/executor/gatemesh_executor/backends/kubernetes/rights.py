"""What the executor's role must allow, as a table, and asking the cluster whether it does."""

import asyncio
from dataclasses import dataclass

from gatemesh_executor.backends.kubernetes.api import KubeApi

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def worded(self) -> str:
        """Return it as an operator reads it."""
        return f"{self.verb} {self.resource}" + (f" ({self.group})" if self.group else "")


def rights(group: str, resource: str, *verbs: str) -> tuple[Right, ...]:
    """Return several verbs on one resource."""
    return tuple(Right(group, resource, verb) for verb in verbs)


NEEDED: tuple[Right, ...] = (
    *rights("", "pods", "get", "list", "watch", "patch", "delete"),
    *rights("", "pods/eviction", "create"),
    *rights("", "endpoints", "get"),
    *rights("apps", "statefulsets", "get", "list", "watch", "patch"),
    *rights("apps", "deployments", "get", "list", "watch", "patch"),
    *rights("apps", "statefulsets/scale", "patch"),
    *rights("apps", "deployments/scale", "patch"),
    *rights("apps", "replicasets", "list"),
    *rights("apps", "controllerrevisions", "list"),
)


async def missing_rights(api: KubeApi) -> list[Right]:
    """Return what the login may not do; anybody may ask that of themselves."""
    allowed = await asyncio.gather(*(is_allowed(api, right) for right in NEEDED))
    return [right for right, granted in zip(NEEDED, allowed, strict=True) if not granted]


async def is_allowed(api: KubeApi, right: Right) -> bool:
    """Ask the cluster whether it would allow this."""
    plural, _, sub = right.resource.partition("/")
    attributes = {
        "namespace": api.namespace,
        "verb": right.verb,
        "group": right.group,
        "resource": plural,
        "subresource": sub,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.create(REVIEWS, review)
    return bool(answer["status"]["allowed"])
