"""What kubectl makes of our kustomizations, and what is found in it."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[3]
MANIFESTS = Path("deploy", "kubernetes")
FOLDER = REPOSITORY / MANIFESTS
PRODUCTION, DEV, SIDECAR = "overlays/production", "overlays/dev", "examples/vllm-sidecar"
GATEWAY, STATEFUL_SET = "examples/vllm-gateway", "examples/vllm-statefulset"
NAMES = (PRODUCTION, DEV, GATEWAY, SIDECAR, STATEFUL_SET)

COMPONENT = "app.kubernetes.io/component"
POOL = "gatemesh.io/pool"
SECRETS = "/run/gatemesh"
"""Where the images' entry point looks for secrets."""

Object = dict[str, Any]


def tool() -> tuple[str, ...] | None:
    """Return the command that renders a kustomization; None where there is none."""
    for command in (("kubectl", "kustomize"), ("kustomize", "build")):
        if shutil.which(command[0]):
            return command
    return None


def render(command: tuple[str, ...], folder: Path) -> list[Object]:
    """Return the objects of a kustomization."""
    result = subprocess.run(
        (*command, str(folder)), capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert not result.stderr, "kustomize warns: " + result.stderr
    return list(yaml.safe_load_all(result.stdout))


def of_kind(items: list[Object], *kinds: str) -> list[Object]:
    """Return the objects of some kinds."""
    return [item for item in items if item["kind"] in kinds]


def name_of(item: Object) -> str:
    """Return an object's name."""
    return str(item["metadata"]["name"])


@dataclass(frozen=True)
class Pod:
    """A pod as an owner would make it."""

    owner: Object

    @property
    def name(self) -> str:
        """The owner's kind and name."""
        return f"{self.owner['kind']}/{name_of(self.owner)}"

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return dict(self.owner["spec"]["template"]["metadata"].get("labels", {}))

    @property
    def spec(self) -> Object:
        """Its specification."""
        return dict(self.owner["spec"]["template"]["spec"])

    @property
    def containers(self) -> list[Object]:
        """Its containers, those of the start included."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def part(self) -> str:
        """What it is in the mesh: a service, a server or an engine."""
        return "engine" if POOL in self.labels else self.labels[COMPONENT]

    def volume(self, name: str) -> Object:
        """Return one of its volumes; those that a StatefulSet claims have no source here."""
        claims = self.owner["spec"].get("volumeClaimTemplates", [])
        claimed: list[Object] = [{"name": name_of(claim)} for claim in claims]
        [found] = [one for one in self.spec.get("volumes", []) + claimed if one["name"] == name]
        return dict(found)


def pods(items: list[Object]) -> list[Pod]:
    """Return every pod that the objects lead to."""
    return [Pod(item) for item in of_kind(items, "Deployment", "StatefulSet", "Job")]


def our_service(container: Object) -> str | None:
    """Return the service that a container's image is built for; None for an image of others."""
    found = re.search(r"(?:^|/)gatemesh/([a-z_]+)(?::|$)", container["image"])
    return found.group(1) if found else None


def ours(items: list[Object]) -> Iterator[tuple[Pod, Object, str]]:
    """Yield every container of our images with its pod and service."""
    for pod in pods(items):
        for container in pod.containers:
            if service := our_service(container):
                yield pod, container, service


def ports(container: Object) -> dict[str, int]:
    """Return a container's ports by name."""
    return {port["name"]: port["containerPort"] for port in container.get("ports", [])}


def covers(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector takes these labels."""
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    expressions: list[Object] = selector.get("matchExpressions", [])
    return wanted.items() <= labels.items() and all(_holds(one, labels) for one in expressions)


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    if expression["operator"] == "Exists":
        return expression["key"] in labels
    assert expression["operator"] == "In", f"not read here: {expression}"
    return labels.get(expression["key"]) in expression["values"]
