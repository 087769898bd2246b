"""Weights pulled anew inside of the pod, by an init container that reads an annotation."""

from dataclasses import dataclass
from enum import Enum, auto

from gatemesh_executor.backends.kubernetes import pods
from gatemesh_executor.backends.kubernetes.api import (
    PODS,
    ConflictError,
    NotThereError,
    Object,
    RejectedError,
)
from gatemesh_executor.backends.kubernetes.backend import KILL_WAIT_S, KubernetesBackend
from gatemesh_executor.instances import Instance
from gatemesh_executor.weights.pull import PullFailedError

REPULL = "gatemesh.io/repull"
"""Annotation of a pod: the order that its weights must be pulled for."""
PULLER = "gatemesh-weights"
"""Name of the init container; it ends with the order it obeyed as its termination message."""
TRIES = 3
STOP_GRACE_S = 1.0


class Pull(Enum):
    """Where the init container stands."""

    UNDER_WAY = auto()
    DONE = auto()
    MISSED = auto()
    """It ended before it saw the order."""
    FAILED = auto()


def has_puller(pod: Object) -> bool:
    """Return True when the pod can pull weights."""
    containers = pod["spec"].get("initContainers") or ()
    return any(container["name"] == PULLER for container in containers)


def pull_state(pod: Object | None, uid: str, pull_id: str) -> Pull:
    """Return how far the pod with this uid is with an order (pure)."""
    if pod is None or pods.uid_of(pod) != uid:
        return Pull.MISSED
    state = pods.init_status(pod, PULLER).get("state") or {}
    ended = state.get("terminated")
    if ended is None:
        again = (state.get("waiting") or {}).get("reason") == pods.CRASH_LOOP
        return Pull.FAILED if again else Pull.UNDER_WAY
    if ended["exitCode"] != 0:
        return Pull.FAILED
    return Pull.DONE if ended.get("message", "").strip() == pull_id else Pull.MISSED


def failure_of(pod: Object | None) -> str:
    """Return the init container's last words."""
    status = {} if pod is None else pods.init_status(pod, PULLER)
    for place in ("state", "lastState"):
        ended = (status.get(place) or {}).get("terminated")
        if ended is not None:
            return f"code {ended['exitCode']} {ended.get('message', '')}".strip()[:300]
    return "no word"


@dataclass
class PodWeights:
    """Orders a pull by annotation and reads back that it was obeyed.

    A pod cannot be annotated before it exists, so the order may come too late for a quick init
    container; then the pod makes way for another one.
    """

    backend: KubernetesBackend

    async def start_fresh(self, instance: Instance, pull_id: str, timeout_s: float) -> bool:
        """Start a pod whose init container pulled for this order."""
        for _ in range(TRIES):
            pod = await self.backend.ensure_pod(instance)
            if not has_puller(pod):
                await self.backend.start(instance)
                return False
            await self._order(pod, pull_id)
            if await self._is_pulled(instance, pod, pull_id, timeout_s):
                await self.backend.start(instance)
                return True
            await self._make_way(pod)
        raise PullFailedError(f"the init container {PULLER} never saw the order; see its log")

    async def _order(self, pod: Object, pull_id: str) -> None:
        """Annotate this very pod; one that is gone is told by what follows."""
        patch = {"metadata": {"uid": pods.uid_of(pod), "annotations": {REPULL: pull_id}}}
        try:
            await self.backend.api.change(PODS, pod["metadata"]["name"], patch)
        except (NotThereError, ConflictError, RejectedError):
            # The uid is part of the patch: another pod may have taken the name.
            return

    async def _is_pulled(
        self, instance: Instance, pod: Object, pull_id: str, timeout_s: float
    ) -> bool:
        """Wait for the init container's end; False when it did not see the order."""
        fleet, uid = self.backend.fleet, pods.uid_of(pod)

        def state() -> Pull:
            return pull_state(fleet.pod(instance.instance_id), uid, pull_id)

        in_time = await fleet.news.until(lambda: state() is not Pull.UNDER_WAY, timeout_s)
        fleet.believe()
        if in_time and state() in (Pull.DONE, Pull.MISSED):
            return state() is Pull.DONE
        words = failure_of(fleet.pod(instance.instance_id))
        if fleet.slot(instance.instance_id).stays:
            await self.backend.stop(instance, None, STOP_GRACE_S)
        raise PullFailedError(words if in_time else f"not done in {timeout_s:g} s")

    async def _make_way(self, pod: Object) -> None:
        fleet = self.backend.fleet
        await self.backend.ender.discard(pod)
        await fleet.news.until(lambda: not fleet.has_pod(pods.uid_of(pod)), KILL_WAIT_S)
