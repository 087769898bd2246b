"""A cluster for tests: the fake, or the real API server that a kubeconfig names."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from gatemesh_executor.backends.kubernetes.api import Call, KubeApi, Object, Resource
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.kubernetes.connect import connected
from gatemesh_executor.backends.kubernetes.fleet import PodFleet
from gatemesh_mesh.kube_lab import KUBECONFIG_VARIABLE

from .kube_node import Node
from .kube_server import FakeKube

ROLE_FILE = Path(__file__).parents[3] / "deploy" / "kubernetes" / "executor-rbac.yaml"
SERVICES = Resource("", "v1", "services")
BUDGETS = Resource("policy", "v1beta1", "poddisruptionbudgets")
ACCOUNT = "gatemesh-executor"


class Proxy:
    """Passes bytes on to an API server until it is told to stop."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 443)
        self._scheme = parts.scheme
        self._server: asyncio.Server | None = None
        self._away = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{self._scheme}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Accept nobody any more and cut everybody."""
        if self._server is not None:
            self._server.close()
        self.sever()

    def sever(self) -> None:
        """Cut every connection; new ones are accepted."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def go_away(self) -> None:
        """Cut every connection, and every new one at once."""
        self._away = True
        self.sever()

    def come_back(self) -> None:
        """Let new connections be."""
        self._away = False

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._away:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(far_writer)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(_pump(source, sink))
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.transport.abort()


def kubeconfig_for(server: str, user: Mapping[str, Any], folder: Path) -> Path:
    """Write a kubeconfig and return its path."""
    cluster: dict[str, Any] = {"server": server}
    if server.startswith("https"):
        cluster["insecure-skip-tls-verify"] = True
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / f"kubeconfig-{uuid.uuid4().hex[:6]}"
    path.write_text(json.dumps(config))
    return path


@dataclass
class Cluster:
    """One namespace of an API server, seen by its administrator and by an executor."""

    admin: KubeApi
    executor: KubeApi
    proxy: Proxy
    """Between the executor and the API server."""
    node: Node
    fake: FakeKube | None = None

    async def make(self, resource: Resource, item: Object) -> Object:
        """Create an object as the administrator."""
        return await self.admin.create(resource.path(self.admin.namespace), item)

    @asynccontextmanager
    async def backend(self, **rules: Any) -> AsyncIterator[KubernetesBackend]:
        """Give a backend that follows what is there now."""
        fleet = PodFleet(self.executor)
        running = asyncio.create_task(fleet.run())
        try:
            listed = await fleet.news.until(lambda: _is_listed(fleet), 30.0)
            assert listed, "the watches did not begin"
            yield KubernetesBackend(self.executor, fleet, **rules)
        finally:
            await _end(running)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _is_listed(fleet: PodFleet) -> bool:
    return all(one.fault is None for one in (fleet.pods, *fleet.owners.values()))


@asynccontextmanager
async def fake_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Give a cluster in this process."""
    fake = FakeKube("mesh")
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(fake.serving())
        proxy = await stack.enter_async_context(Proxy(url))
        admin = await _api(stack, url, {"token": "admin"}, fake.namespace, folder)
        executor = await _api(stack, proxy.url, {"token": "executor"}, fake.namespace, folder)
        node = await _node(stack, admin)
        yield Cluster(admin, executor, proxy, node, fake)


@asynccontextmanager
async def real_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Give a fresh namespace of the real API server, its executor limited to our own role."""
    given = given_kubeconfig()
    url, user = given["clusters"][0]["cluster"]["server"], given["users"][0]["user"]
    namespace = f"gatemesh-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(url))
        admin = await _api(stack, url, user, namespace, folder)
        await admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        stack.push_async_callback(forget, admin, f"/api/v1/namespaces/{namespace}")
        token = await _limited_token(admin)
        executor = await _api(stack, proxy.url, {"token": token}, namespace, folder)
        node = await _node(stack, admin)
        yield Cluster(admin, executor, proxy, node)


async def _api(
    stack: AsyncExitStack, url: str, user: Mapping[str, Any], namespace: str, folder: Path
) -> KubeApi:
    path = kubeconfig_for(url, user, folder)
    return KubeApi(await stack.enter_async_context(connected(path)), namespace)


async def _node(stack: AsyncExitStack, admin: KubeApi) -> Node:
    node = Node(admin, f"node-{uuid.uuid4().hex[:8]}")
    running = asyncio.create_task(node.run())
    stack.push_async_callback(_end, running)
    await node.news.until(lambda: node.pods.fault is None, 30.0)
    return node


async def forget(admin: KubeApi, path: str) -> None:
    """Begin to delete what is at a path."""
    timeout = aiohttp.ClientTimeout(total=30)
    async with await admin.connection.send(Call("DELETE", path), timeout):
        pass


async def _limited_token(admin: KubeApi) -> str:
    """Apply our manifest in the namespace and return a token of its service account."""
    for item in yaml.safe_load_all(ROLE_FILE.read_text()):
        placed = {**item, "metadata": {**item["metadata"], "namespace": admin.namespace}}
        for subject in placed.get("subjects", ()):
            subject["namespace"] = admin.namespace
        group = str(item["apiVersion"]).rpartition("/")
        resource = Resource(group[0], group[2], f"{item['kind'].lower()}s")
        await admin.create(resource.path(admin.namespace), placed)
    accounts = Resource("", "v1", "serviceaccounts")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.create(accounts.path(admin.namespace, ACCOUNT, "token"), request)
    return str(answer["status"]["token"])


def given_kubeconfig() -> Any:
    """Return the kubeconfig of the real API server."""
    return yaml.safe_load(Path(os.environ[KUBECONFIG_VARIABLE]).read_text())


def wants_real() -> bool:
    """Return True when a real API server is named."""
    return bool(os.environ.get(KUBECONFIG_VARIABLE))


REAL = pytest.param(
    "real",
    marks=[
        pytest.mark.kube,
        pytest.mark.skipif(
            not wants_real(),
            reason=f"{KUBECONFIG_VARIABLE} names no cluster; ./mesh test --kube does",
        ),
    ],
)
"""The parameter of the fixture `cluster` that gives the real API server."""
CLUSTERS = ["fake", REAL] if wants_real() else ["fake"]
