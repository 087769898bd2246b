"""A node for tests: plays the kubelet of pods that are bound to it, on any API server.

It runs nothing. An image `engine:HABIT` says how its engine behaves, and what a kubelet would then
write is written: container states, readiness, the end of the pod.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gatemesh_executor.backends.kubernetes.api import (
    PODS,
    ConflictError,
    KubeApi,
    NotThereError,
    Object,
)
from gatemesh_executor.backends.kubernetes.watching import News, Watched

from .kube_store import now

REPULL = "gatemesh.io/repull"
PULLER = "gatemesh-weights"
DRAIN_S = {"steady": 0.2, "fragile": 0.0, "broken": 0.0, "stubborn": float("inf")}


def habit_of(pod: Object) -> str:
    """Return the word after the colon of the engine's image."""
    return str(pod["spec"]["containers"][0]["image"]).rpartition(":")[2]


@dataclass
class Node:
    """Takes care of the pods that are bound to its name."""

    api: KubeApi
    name: str
    pull_delay_s: float = 0.0
    """How long an init container takes before it looks for its order."""
    failing_pulls: bool = False
    _cared_for: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.news = News()
        self.pods = Watched(self.api, PODS, "", self.news, self._notice)

    async def run(self) -> None:
        """Care for pods until cancelled."""
        try:
            await self.pods.run()
        finally:
            for task in self._cared_for.values():
                task.cancel()

    async def crash(self, name: str, code: int = 0) -> None:
        """End the engine in a pod from within; it stays down, as in a long back-off."""
        ended = {"terminated": {"exitCode": code, "startedAt": now(), "finishedAt": now()}}
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        await self._write(name, self._status(await self.api.read(PODS, name), waiting, ended))

    async def run_again(self, name: str) -> None:
        """Start a dead engine again in its pod, as the kubelet does after the back-off."""
        pod = await self.api.read(PODS, name)
        status = self._status(pod, {"running": {"startedAt": now()}}, ready=True)
        status["containerStatuses"][0]["restartCount"] = 1
        await self._write(name, status)

    async def begin(self, name: str) -> None:
        """Start the engine of a pod."""

    async def end(self, pod: Object) -> bool:
        """End the engine of a pod; True when its grace was over first."""
        return await self._is_outlasted(pod["metadata"]["name"], DRAIN_S[habit_of(pod)])

    def _notice(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") == self.name and uid not in self._cared_for:
            self._cared_for[uid] = asyncio.create_task(self._care(pod["metadata"]["name"], uid))

    async def _care(self, name: str, uid: str) -> None:
        """Bring a pod up, wait for its deletion, and bring it down."""
        with suppress(NotThereError, ConflictError):
            await self._bring_up(name)
        await self.news.until(lambda: self._is_leaving(name, uid), float("inf"))
        pod = self.pods.objects.get(name)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        with suppress(NotThereError, ConflictError):
            await self._bring_down(pod)

    def _is_leaving(self, name: str, uid: str) -> bool:
        pod = self.pods.objects.get(name)
        gone = pod is None or pod["metadata"]["uid"] != uid
        return gone or "deletionTimestamp" in (pod or {})["metadata"]

    async def _bring_up(self, name: str) -> None:
        pod = await self.api.read(PODS, name)
        if pod["spec"].get("initContainers"):
            await self._pull(name)
            if self.failing_pulls:
                return
        if habit_of(pod) == "broken":
            waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
            await self._write(name, self._status(pod, waiting))
            return
        await self.begin(name)
        running = {"running": {"startedAt": now()}}
        await self._write(name, self._status(pod, running, ready=True))

    async def _pull(self, name: str) -> None:
        """Play the init container: look for the order, and end with it as the message."""
        await asyncio.sleep(self.pull_delay_s)
        pod = await self.api.read(PODS, name)
        order = (pod["metadata"].get("annotations") or {}).get(REPULL, "")
        code = 1 if self.failing_pulls else 0
        ended = {
            "exitCode": code,
            "message": "disk full" if code else order,
            "startedAt": now(),
            "finishedAt": now(),
        }
        status = _container(PULLER, {"terminated": ended})
        if code:
            waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
            status |= {"state": waiting, "lastState": {"terminated": ended}}
        await self._write(name, {"initContainerStatuses": [status]})

    async def _bring_down(self, pod: Object) -> None:
        metadata = pod["metadata"]
        killed = await self.end(pod)
        code = 137 if killed else 0
        ended = {"terminated": {"exitCode": code, "startedAt": now(), "finishedAt": now()}}
        await self._write(metadata["name"], self._status(pod, ended))
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": metadata["uid"]},
        }
        await self.api.remove(PODS, metadata["name"], options)

    async def _is_outlasted(self, name: str, drain_s: float) -> bool:
        """Wait for the engine to leave; True when its grace, which may be cut, is over first."""
        loop = asyncio.get_running_loop()
        begun = loop.time()

        while (grace_s := self._grace_s(name)) < drain_s:
            left_s = begun + grace_s - loop.time()
            cut = partial(self._is_cut, name, grace_s)
            if left_s <= 0 or not await self.news.until(cut, left_s):
                return True
        await asyncio.sleep(drain_s)
        return False

    def _grace_s(self, name: str) -> float:
        return float(self.pods.objects[name]["metadata"]["deletionGracePeriodSeconds"])

    def _is_cut(self, name: str, grace_s: float) -> bool:
        return self._grace_s(name) < grace_s

    def _status(
        self, pod: Object, state: Any, last: Any = None, *, ready: bool = False
    ) -> dict[str, Any]:
        name = pod["spec"]["containers"][0]["name"]
        told = _container(name, state) | {"ready": ready, "lastState": last or {}}
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        return {
            "phase": "Running" if "running" in state else "Pending",
            "podIP": "10.1.0.9",
            "podIPs": [{"ip": "10.1.0.9"}],
            "conditions": [condition],
            "containerStatuses": [told],
        }

    async def _write(self, name: str, status: Any) -> None:
        await self.api.change(PODS, name, {"status": status}, sub="status")


def _container(name: str, state: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "engine",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }
