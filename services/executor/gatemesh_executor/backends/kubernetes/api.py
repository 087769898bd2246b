"""Requests to the Kubernetes API, its refusals told apart by what a caller does about them."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp

from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError

Object = Mapping[str, Any]
"""An API object as JSON."""

MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
JSON = "application/json"
PASSING = HTTPStatus.INTERNAL_SERVER_ERROR
"""This status and those above pass by themselves."""
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
SILENCE_S = 10.0
"""A watch that outlasts its time by so much hangs."""


class ConflictError(GatemeshError):
    """The object is not the one that was read any more."""

    retryable = True


class NotThereError(GatemeshError):
    """There is no such object."""


class ExpiredError(GatemeshError):
    """The API keeps no history that far back; list again."""


class RejectedError(GatemeshError):
    """The API finds the request itself at fault."""


class EvictionRefusedError(BackendUnavailableError):
    """A disruption budget forbids to end the pod now."""


@dataclass(frozen=True)
class Resource:
    """A kind of objects: where the API keeps them."""

    group: str
    version: str
    plural: str

    def path(self, namespace: str, name: str = "", sub: str = "") -> str:
        """Return the path of all of them in a namespace, of one, or of one's subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = (root, "namespaces", namespace, self.plural, name, sub)
        return "/".join(part for part in parts if part)


PODS = Resource("", "v1", "pods")
ENDPOINTS = Resource("", "v1", "endpoints")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets")
DEPLOYMENTS = Resource("apps", "v1", "deployments")
REPLICA_SETS = Resource("apps", "v1", "replicasets")
CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions")


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    content_type: str = JSON

    @property
    def verb(self) -> str:
        """The word that a role would have to hold."""
        if self.method != "GET":
            return VERBS[self.method]
        if ("watch", "1") in self.query:
            return "watch"
        return "get" if len(self._parts) > 1 else "list"

    @property
    def resource(self) -> str:
        """The resource as a role names it; empty outside of namespaces."""
        return "/".join(self._parts[::2])

    @property
    def _parts(self) -> list[str]:
        """Kind, name and subresource, as far as the path goes."""
        return self.path.partition("/namespaces/")[2].split("/")[1:]


class Connection(Protocol):
    """Sends requests with the credentials of the cluster."""

    async def send(self, call: Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Return the answer, its body unread; raises what aiohttp raises."""


@dataclass(frozen=True)
class Listing:
    """All objects of a kind at one moment, and the name of that moment."""

    items: tuple[Object, ...]
    version: str


@dataclass(frozen=True)
class KubeApi:
    """One namespace of a cluster.

    Raises:
        BackendUnavailableError: no answer, or one that passes by itself (429, 5xx).
        SettingsError: the login is wrong, or the role lacks a verb, which is named.
        ConflictError, NotThereError, ExpiredError, RejectedError: as their names say.
    """

    connection: Connection
    namespace: str
    deadline_s: float = 10.0

    async def read(self, resource: Resource, name: str) -> Object:
        """Return one object."""
        return await self._ask(Call("GET", resource.path(self.namespace, name)))

    async def read_path(self, path: str) -> Object:
        """Return what is at a path outside of the namespace."""
        return await self._ask(Call("GET", path))

    async def find(self, resource: Resource, selector: str = "") -> Listing:
        """Return all objects with these labels."""
        query = (("labelSelector", selector),)
        answer = await self._ask(Call("GET", resource.path(self.namespace), query))
        return Listing(tuple(answer["items"]), answer["metadata"]["resourceVersion"])

    async def change(
        self, resource: Resource, name: str, patch: Any, kind: str = MERGE, sub: str = ""
    ) -> Object:
        """Patch one object and return what it became."""
        path = resource.path(self.namespace, name, sub)
        return await self._ask(Call("PATCH", path, body=patch, content_type=kind))

    async def create(self, path: str, body: Any) -> Object:
        """Post an object to a path."""
        return await self._ask(Call("POST", path, body=body))

    async def remove(self, resource: Resource, name: str, options: Any) -> None:
        """Delete one object."""
        path = resource.path(self.namespace, name)
        await self._ask(Call("DELETE", path, body=options))

    async def evict(self, version: str, name: str, options: Any) -> None:
        """Ask for the end of a pod, within the disruption budgets.

        Raises:
            EvictionRefusedError: a budget forbids it now.
        """
        body = {
            "apiVersion": f"policy/{version}",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
            "deleteOptions": options,
        }
        await self._ask(Call("POST", PODS.path(self.namespace, name, "eviction"), body=body))

    async def eviction_version(self) -> str:
        """Return the version of evictions that this cluster knows."""
        answer = await self.read_path("/api/v1")
        return next(
            (found["version"] for found in answer["resources"] if found["name"] == "pods/eviction"),
            "v1",
        )

    @asynccontextmanager
    async def following(
        self, resource: Resource, selector: str, version: str, lasting_s: int
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Give every change since a version as it comes, until the time is over."""
        query = (
            ("labelSelector", selector),
            ("resourceVersion", version),
            ("timeoutSeconds", str(lasting_s)),
            ("allowWatchBookmarks", "true"),
            ("watch", "1"),
        )
        timeout = aiohttp.ClientTimeout(
            sock_connect=self.deadline_s, sock_read=lasting_s + SILENCE_S
        )
        call = Call("GET", resource.path(self.namespace), query)
        async with self._answer(call, timeout) as response:
            yield _events(response)

    async def _ask(self, call: Call) -> Object:
        timeout = aiohttp.ClientTimeout(total=self.deadline_s)
        async with self._answer(call, timeout) as response:
            answer: Object = await response.json(content_type=None)
            return answer

    @asynccontextmanager
    async def _answer(
        self, call: Call, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give an answer that is no refusal, and word what goes wrong meanwhile."""
        try:
            async with await self.connection.send(call, timeout) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    raise refusal(call, response.status, await response.text())
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # ValueError: a body cut short is no JSON.
            what = f"{type(error).__name__} {error}".strip()
            raise BackendUnavailableError(f"Kubernetes does not answer: {what}") from error


def refusal(call: Call, status: int, text: str) -> GatemeshError:
    """Return the error for an answer that says no."""
    told = status_of(text)
    words = f"{call.verb} {call.resource or call.path}: {status} {told.get('message', text)[:300]}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return SettingsError(denial(call, status, words))
    if status == HTTPStatus.TOO_MANY_REQUESTS and names_a_budget(told):
        return EvictionRefusedError(words)
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= PASSING:
        return BackendUnavailableError(words)
    return KINDS.get(status, RejectedError)(words)


KINDS: Mapping[int, type[GatemeshError]] = {
    HTTPStatus.NOT_FOUND: NotThereError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.GONE: ExpiredError,
}


def denial(call: Call, status: int, words: str) -> str:
    """Say what the login may not do, and the way out."""
    if status == HTTPStatus.UNAUTHORIZED:
        return f"Kubernetes does not accept the executor's login; renew its credentials ({words})"
    return (
        f"the executor's role lacks the verb {call.verb!r} on {call.resource!r}; "
        f"apply deploy/kubernetes/executor-rbac.yaml ({words})"
    )


def names_a_budget(told: Object) -> bool:
    """Return True when a disruption budget is the cause, not a busy API."""
    causes = (told.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)


def status_of(text: str) -> Object:
    """Return the Status object in an answer; empty when it holds none."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    async for line in response.content:
        event: Object = json.loads(line)
        if event["type"] == "ERROR":
            raise fault_of(event["object"])
        yield event


def fault_of(told: Object) -> GatemeshError:
    """Return the error for a Status object that ends a watch."""
    code = int(told.get("code", 0))
    words = f"watch: {code} {told.get('message', '')}"
    return KINDS.get(code, BackendUnavailableError)(words)
