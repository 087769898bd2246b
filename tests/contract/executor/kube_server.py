"""A tiny Kubernetes API: enough of it, and true to it where a recorded conversation checks."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from .kube_controllers import Controllers
from .kube_store import ApiError, Json, Store, matches

ITEM = "/{root:apis?}/{tail:.*}namespaces/{namespace}/{plural}"
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


@dataclass
class FakeKube:
    """One namespace behind an HTTP server on loopback."""

    namespace: str
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Verb and resource that the login may not use."""
    faults: list[tuple[str, str, int]] = field(default_factory=list)
    """Verb, resource and status of answers to give instead of the true ones, each once."""
    watches: int = 0
    """How many were begun."""

    def __post_init__(self) -> None:
        self.store = Store(self.namespace)
        self.controllers = Controllers(self.store)
        self.store.react = self.controllers.run
        self._streams: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve and give the address."""
        application = web.Application()
        application.router.add_get("/api/v1", self._discovery)
        application.router.add_post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", self._review
        )
        for path in (ITEM, ITEM + "/{name}", ITEM + "/{name}/{sub}"):
            application.router.add_route("*", path, self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self.end_watches()
            await runner.cleanup()

    def end_watches(self) -> None:
        """Cut every watch that is open."""
        for stream in self._streams:
            stream.cancel()

    async def _discovery(self, _: web.Request) -> web.Response:
        eviction = {"name": "pods/eviction", "group": "policy", "version": "v1"}
        return web.json_response({"kind": "APIResourceList", "resources": [eviction]})

    async def _review(self, request: web.Request) -> web.Response:
        review = await request.json()
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = (asked["verb"], resource) not in self.denied
        return web.json_response({**review, "status": {"allowed": allowed}}, status=201)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        info = request.match_info
        resource = "/".join(filter(None, (info["plural"], info.get("sub"))))
        try:
            self._need_rights(_verb(request), resource)
            self._inject(_verb(request), resource)
            if request.query.get("watch"):
                return await self._watch(request)
            body = await request.json() if request.can_read_body else {}
            status, answer = self._handlers()[request.method](request, body)
            return web.json_response(answer, status=status)
        except ApiError as error:
            return web.json_response(error.status, status=error.code)

    def _handlers(self) -> dict[str, Callable[[web.Request, Json], tuple[int, Json]]]:
        return {
            "GET": self._get,
            "POST": self._post,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }

    def _need_rights(self, verb: str, resource: str) -> None:
        if (verb, resource) in self.denied:
            message = (
                f'{resource} is forbidden: User "executor" cannot {verb} resource "{resource}"'
            )
            raise ApiError(403, "Forbidden", message)

    def _inject(self, verb: str, resource: str) -> None:
        for fault in self.faults:
            if fault[:2] == (verb, resource):
                self.faults.remove(fault)
                raise ApiError(fault[2], "Injected", f"injected {fault[2]}")

    def _get(self, request: web.Request, _: Json) -> tuple[int, Json]:
        plural, name = request.match_info["plural"], request.match_info.get("name")
        if name:
            return 200, self.store.get(plural, name)
        selector = request.query.get("labelSelector", "")
        found = self.store.of(plural).values()
        items = [item for item in found if matches(selector, item["metadata"].get("labels"))]
        return 200, {"items": items, "metadata": {"resourceVersion": str(self.store.version())}}

    def _post(self, request: web.Request, body: Json) -> tuple[int, Json]:
        info = request.match_info
        if info.get("sub") != "eviction":
            return 201, self.store.create(info["plural"], body)
        pod = self.store.get("pods", info["name"])
        options = body.get("deleteOptions") or {}
        self.controllers.need_budget(pod)
        self._end(pod, options)
        return 201, {"kind": "Status", "status": "Success"}

    def _patch(self, request: web.Request, body: Json) -> tuple[int, Json]:
        plural, name = request.match_info["plural"], request.match_info["name"]
        item = self.store.patch(plural, name, body)
        if request.match_info.get("sub") == "scale":
            return 200, {"kind": "Scale", "spec": {"replicas": item["spec"]["replicas"]}}
        return 200, item

    def _delete(self, request: web.Request, body: Json) -> tuple[int, Json]:
        plural, name = request.match_info["plural"], request.match_info["name"]
        item = self.store.get(plural, name)
        if plural != "pods":
            return 200, self.store.remove(plural, name)
        self._end(item, body)
        return 200, item

    def _end(self, pod: Json, options: Json) -> None:
        self.store.need_same("pods", pod, options.get("preconditions") or {})
        asked = options.get("gracePeriodSeconds")
        own = pod["spec"].get("terminationGracePeriodSeconds")
        self.controllers.end_pod(pod, own if asked is None else asked)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watches += 1
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        task = asyncio.ensure_future(self._stream(request, stream))
        self._streams.add(task)
        try:
            await asyncio.wait({task}, timeout=float(request.query["timeoutSeconds"]))
            if task.cancelled() and request.transport is not None:
                request.transport.abort()
            elif task.done():
                # A client that went away in the middle is no fault.
                task.exception()
        finally:
            task.cancel()
            self._streams.discard(task)
        return stream

    async def _stream(self, request: web.Request, stream: web.StreamResponse) -> None:
        plural, selector = request.match_info["plural"], request.query.get("labelSelector", "")
        version = int(request.query["resourceVersion"])
        while True:
            told = self.store.next_change()
            try:
                changes = list(self.store.since(plural, version))
            except ApiError as error:
                await stream.write(_line("ERROR", error.status))
                return
            for change in changes:
                version = change.version
                if matches(selector, change.item["metadata"].get("labels")):
                    await stream.write(_line(change.kind, change.item))
            await told.wait()


def _verb(request: web.Request) -> str:
    if request.method != "GET":
        return VERBS[request.method]
    if request.query.get("watch"):
        return "watch"
    return "get" if request.match_info.get("name") else "list"


def _line(kind: str, item: Json) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"
