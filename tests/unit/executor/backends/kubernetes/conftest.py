"""Pods and owners as the API gives them, and an API that answers from a list."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import aiohttp

from gatemesh_executor.backends.kubernetes.api import Call, KubeApi

NAMESPACE = "mesh"


class FakeAnswer:
    """What aiohttp gives, as far as it is read."""

    def __init__(self, status: int, body: Any, lines: Sequence[Any] = ()) -> None:
        self.status = status
        self._text = body if isinstance(body, str) else json.dumps(body)
        self._lines = [json.dumps(line).encode() for line in lines]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def text(self) -> str:
        """Return the body."""
        return self._text

    async def json(self, content_type: None = None) -> Any:
        """Return the body, read as JSON."""
        return json.loads(self._text)

    @property
    def content(self) -> AsyncIterator[bytes]:
        """The lines of a watch."""
        return self._each()

    async def _each(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield line


@dataclass
class Script:
    """A connection that gives the next answer of a list, and keeps what was asked."""

    answers: list[FakeAnswer | Exception] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def api(self) -> KubeApi:
        """An API on this connection."""
        return KubeApi(self, NAMESPACE)

    async def send(self, call: Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Return or raise the next answer."""
        self.calls.append(call)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast(aiohttp.ClientResponse, answer)


def status(code: int, reason: str = "", *causes: str) -> FakeAnswer:
    """Return a refusal."""
    details = {"causes": [{"reason": cause} for cause in causes]}
    return FakeAnswer(code, {"kind": "Status", "code": code, "message": reason, "details": details})


def pod_of(
    name: str = "vllm-0",
    state: dict[str, Any] | None = None,
    *,
    uid: str = "u1",
    restarts: int = 0,
    last: dict[str, Any] | None = None,
    created: str = "2026-01-01T12:00:00Z",
    ending: bool = False,
    phase: str = "Running",
    kind: str = "StatefulSet",
    owner: str = "vllm",
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return a pod whose engine is in a state; none is known without one."""
    metadata: dict[str, Any] = {
        "name": name,
        "uid": uid,
        "resourceVersion": "7",
        "creationTimestamp": created,
        "labels": labels or {},
        "ownerReferences": [{"kind": kind, "name": owner, "controller": True}],
    }
    if ending:
        metadata |= {"deletionTimestamp": created, "deletionGracePeriodSeconds": 5}
    told = {
        "name": "engine",
        "restartCount": restarts,
        "state": state or {},
        "lastState": last or {},
    }
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "engine"}]},
        "status": {"phase": phase, "containerStatuses": [told] if state else []},
    }


RUNNING = {"running": {"startedAt": "2026-01-01T12:00:05Z"}}


def owner_of(name: str = "vllm", **spec: Any) -> dict[str, Any]:
    """Return a StatefulSet of two that keeps all promises."""
    template = {
        "metadata": {"labels": {"gatemesh.io/pool": "chat"}},
        "spec": {"containers": [{"name": "engine", "ports": [{"containerPort": 9000}]}]},
    }
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": "o1",
            "labels": {"gatemesh.io/pool": "chat"},
            "annotations": {},
            "resourceVersion": "3",
            "generation": 1,
        },
        "spec": {
            "replicas": 2,
            "serviceName": "engines",
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": template,
            **spec,
        },
        "status": {"observedGeneration": 1},
    }
