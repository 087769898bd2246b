"""What a pod says of the engine in it (pure)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gatemesh_executor.backends.base import Observation, Phase
from gatemesh_executor.backends.kubernetes.api import Object

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""Annotation that says which container is the engine; otherwise it is the first one."""
GIVEN_UP = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""What the kubelet says of a container that cannot be started."""
CRASH_LOOP = "CrashLoopBackOff"
KILLED_CODE = 137
"""Exit code of what SIGKILL ended."""
ENDED_PHASES = ("Succeeded", "Failed")


def uid_of(pod: Object) -> str:
    """Return the pod's own name for ever."""
    return str(pod["metadata"]["uid"])


def is_ending(pod: Object) -> bool:
    """Return True when the pod's deletion has begun."""
    return "deletionTimestamp" in pod["metadata"]


def engine_container(spec: Mapping[str, Any], annotations: Mapping[str, str] | None) -> Object:
    """Return the container of a pod or template that runs the engine."""
    containers: list[Object] = spec["containers"]
    wanted = (annotations or {}).get(DEFAULT_CONTAINER)
    return next((found for found in containers if found["name"] == wanted), containers[0])


def life_name(uid: str, restarts: int) -> str:
    """Return the name of a life: the pod's uid, and how often its engine was started again in it.

    The kubelet starts a dead container again in the same pod; that is a new life of the engine.
    """
    return f"{uid}/{restarts}" if restarts else uid


def is_of_pod(life_id: str, uid: str) -> bool:
    """Return True when a life was lived in the pod with this uid."""
    return life_id.partition("/")[0] == uid


def observation(pod: Object | None) -> Observation:
    """Return where the engine stands; without a pod it is stopped."""
    if pod is None:
        return Observation(Phase.STOPPED)
    status = _engine_status(pod)
    state = status.get("state") or {}
    if "running" in state:
        return _running(pod, status, state["running"])
    code = exit_code(pod)
    if is_ending(pod):
        return Observation(Phase.STOPPING, exit_code=code)
    if code is not None or pod["status"].get("phase") in ENDED_PHASES:
        return Observation(Phase.EXITED, exit_code=code)
    return Observation(Phase.STARTING if trouble(pod) is None else Phase.FAILED)


def _running(pod: Object, status: Object, running: Object) -> Observation:
    return Observation(
        Phase.STOPPING if is_ending(pod) else Phase.RUNNING,
        life_name(uid_of(pod), status.get("restartCount", 0)),
        datetime.fromisoformat(running["startedAt"]) if running.get("startedAt") else None,
    )


def exit_code(pod: Object) -> int | None:
    """Return how the engine's last life in this pod ended; None while one runs or none has."""
    status = _engine_status(pod)
    state = status.get("state") or {}
    ended = state.get("terminated")
    if ended is None and (state.get("waiting") or {}).get("reason") == CRASH_LOOP:
        ended = (status.get("lastState") or {}).get("terminated")
    return None if ended is None else int(ended["exitCode"])


def trouble(pod: Object) -> str | None:
    """Return why the pod's containers cannot be started; None when nothing is known against it."""
    for status in (*_init_statuses(pod), _engine_status(pod)):
        waiting = (status.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason", "")
        if reason in GIVEN_UP or reason == CRASH_LOOP:
            return f"container {status.get('name')}: {reason} {waiting.get('message', '')}".strip()
    return None


def init_status(pod: Object, name: str) -> Object:
    """Return what is known of an init container; empty when nothing is."""
    return next((found for found in _init_statuses(pod) if found.get("name") == name), {})


def choose(pods: Iterable[Object]) -> Object | None:
    """Return the pod that stands for an instance: the oldest with a life, else the newest.

    So the lives of one instance follow each other, also where an owner makes the next pod early.
    """
    by_age = sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], uid_of(pod)))
    alive = [pod for pod in by_age if observation(pod).running]
    return alive[0] if alive else (by_age[-1] if by_age else None)


def _engine_status(pod: Object) -> Object:
    name = engine_container(pod["spec"], pod["metadata"].get("annotations"))["name"]
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((found for found in statuses if found["name"] == name), {})


def _init_statuses(pod: Object) -> list[Object]:
    return (pod.get("status") or {}).get("initContainerStatuses") or []
