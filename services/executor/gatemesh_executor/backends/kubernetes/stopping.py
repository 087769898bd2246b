"""Ending one pod: by eviction within the disruption budgets, by deletion where that is wanted."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.backends.kubernetes import pods
from gatemesh_executor.backends.kubernetes.api import (
    PODS,
    ConflictError,
    EvictionRefusedError,
    KubeApi,
    NotThereError,
    Object,
)
from gatemesh_executor.pace import Pace

log = logging.getLogger(__name__)

TRIES = 10
PAUSE_S = 0.05
"""Pauses after conflicts grow by this: whoever writes the pod comes to an end."""
REFUSALS_KEPT = 100


def is_meant(pod: Object, life_id: str | None) -> bool:
    """Return True when a stop of this life is about this pod as it is now."""
    if life_id is None:
        return True
    present = pods.observation(pod).life_id
    return present == life_id if present is not None else pods.is_of_pod(life_id, pods.uid_of(pod))


def delete_options(pod: Object, grace_s: float) -> Mapping[str, Any]:
    """Return the options that end this pod as it was read, and no other.

    A grace of 0 would only drop the record of a pod whose processes may run on.
    """
    metadata = pod["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": max(1, math.ceil(grace_s)),
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
    }


@dataclass
class PodEnder:
    """Begins the end of pods; who waits for it looks at the fleet."""

    api: KubeApi
    delete_after_s: float | None
    """Refused by a budget for so long, a pod is deleted all the same; None keeps to the budget."""
    pace: Pace
    _refused_since: dict[str, float] = field(default_factory=dict)
    _version: str = ""

    async def end(self, name: str, life_id: str | None, grace_s: float) -> Object | None:
        """Begin the end of the pod of that name, if it is the one that is meant; return it.

        Raises:
            EvictionRefusedError: a disruption budget forbids it now.
        """
        for tried in range(TRIES):
            await self.pace.sleep(tried * PAUSE_S)
            try:
                pod = await self.api.read(PODS, name)
                if not is_meant(pod, life_id):
                    return None
                await self._end(pod, grace_s)
            except NotThereError:
                return None
            except ConflictError:
                # It has changed since it was read, and may not be meant any more.
                continue
            return pod
        raise BackendUnavailableError(f"pod {name} keeps changing")

    async def discard(self, pod: Object, grace_s: float = 1.0) -> None:
        """Delete a pod that serves nobody, whatever the budgets say."""
        options = {**delete_options(pod, grace_s), "preconditions": {"uid": pods.uid_of(pod)}}
        try:
            await self.api.remove(PODS, pod["metadata"]["name"], options)
        except (NotThereError, ConflictError):
            return

    async def _end(self, pod: Object, grace_s: float) -> None:
        options = delete_options(pod, grace_s)
        name = pod["metadata"]["name"]
        if pods.is_ending(pod) or not pods.observation(pod).running:
            # No budget is about a pod that serves nobody. The grace of one that ends already can
            # still be made shorter.
            await self.api.remove(PODS, name, options)
            return
        try:
            await self.api.evict(await self._eviction_version(), name, options)
        except EvictionRefusedError:
            if not self._is_patience_over(pods.uid_of(pod)):
                raise
            log.warning("budget_overruled", extra={"pod": name})
            await self.api.remove(PODS, name, options)

    def _is_patience_over(self, uid: str) -> bool:
        since = self._refused_since.setdefault(uid, self.pace.now())
        if len(self._refused_since) > REFUSALS_KEPT:
            del self._refused_since[next(iter(self._refused_since))]
        return self.delete_after_s is not None and self.pace.now() - since >= self.delete_after_s

    async def _eviction_version(self) -> str:
        self._version = self._version or await self.api.eviction_version()
        return self._version
