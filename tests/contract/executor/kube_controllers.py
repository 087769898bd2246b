"""What a cluster's controllers do, as far as the backend's promises rest on it."""

import copy
import hashlib
import json
from dataclasses import dataclass

from .kube_store import ApiError, Json, Store, matches, now

DEFAULT_GRACE_S = 30


def is_ready(pod: Json) -> bool:
    """Return True when the pod says that it is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_ending(pod: Json) -> bool:
    """Return True when its deletion has begun."""
    return "deletionTimestamp" in pod["metadata"]


def hash_of(template: Json) -> str:
    """Return a short name for a template."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


def owned(items: dict[str, Json], owner: Json) -> dict[str, Json]:
    """Return the objects that belong to an owner."""
    uid = owner["metadata"]["uid"]
    return {
        name: item
        for name, item in items.items()
        if any(one["uid"] == uid for one in item["metadata"].get("ownerReferences") or ())
    }


def reference(kind: str, owner: Json) -> Json:
    """Return what a child says of its owner."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


@dataclass
class Controllers:
    """Make pods for StatefulSets and Deployments, endpoints for Services, and end pods."""

    store: Store

    def run(self) -> None:
        """Bring everything one step nearer to what is asked for."""
        for owner in list(self.store.of("statefulsets").values()):
            self._stateful_set(owner)
        for owner in list(self.store.of("deployments").values()):
            self._deployment(owner)
        for service in list(self.store.of("services").values()):
            self._endpoints(service)

    def end_pod(self, pod: Json, grace_s: int | None) -> None:
        """Begin the end of a pod; one without a node, or with no grace, is gone at once."""
        name = pod["metadata"]["name"]
        asked = DEFAULT_GRACE_S if grace_s is None else grace_s
        before = pod["metadata"].get("deletionGracePeriodSeconds")
        if asked == 0 or not pod["spec"].get("nodeName"):
            self.store.remove("pods", name)
        elif before is None or asked < before:
            metadata = {"deletionTimestamp": now(), "deletionGracePeriodSeconds": asked}
            self.store.patch("pods", name, {"metadata": metadata})

    def need_budget(self, pod: Json) -> None:
        """Raise 429 when a disruption budget forbids the end of this pod."""
        if (pod.get("status") or {}).get("phase") not in ("Running", "Unknown"):
            return
        for budget in self.store.of("poddisruptionbudgets").values():
            chosen = _selector(budget["spec"]["selector"])
            if not matches(chosen, pod["metadata"].get("labels")):
                continue
            healthy = [one for one in self._living(chosen) if is_ready(one)]
            if len(healthy) <= budget["spec"]["minAvailable"]:
                cause = {"reason": "DisruptionBudget", "message": "the budget is spent"}
                message = "Cannot evict pod as it would violate the pod's disruption budget."
                raise ApiError(429, "TooManyRequests", message, [cause])

    def _living(self, selector: str) -> list[Json]:
        found = self.store.of("pods").values()
        chosen = [pod for pod in found if matches(selector, pod["metadata"].get("labels"))]
        return [pod for pod in chosen if not is_ending(pod)]

    def _stateful_set(self, owner: Json) -> None:
        name, template = owner["metadata"]["name"], owner["spec"]["template"]
        revision = self._controller_revision(owner)
        status = {
            "updateRevision": revision,
            "observedGeneration": owner["metadata"]["generation"],
        }
        self.store.patch("statefulsets", name, {"status": status})
        first = (owner["spec"].get("ordinals") or {}).get("start", 0)
        wanted = [f"{name}-{first + number}" for number in range(owner["spec"]["replicas"])]
        for pod in self._children("StatefulSet", name):
            if pod["metadata"]["name"] not in wanted and not is_ending(pod):
                self.end_pod(pod, template["spec"].get("terminationGracePeriodSeconds"))
        for pod_name in wanted:
            if pod_name not in self.store.of("pods"):
                hashed = {"controller-revision-hash": revision}
                self._make_pod(pod_name, template, reference("StatefulSet", owner), hashed)
        self._replace_outdated(name, revision)

    def _replace_outdated(self, name: str, revision: str) -> None:
        """End one pod of an older revision at a time."""
        children = self._children("StatefulSet", name)
        old = [
            pod
            for pod in children
            if pod["metadata"]["labels"]["controller-revision-hash"] != revision
        ]
        if old and not any(map(is_ending, children)):
            self.end_pod(max(old, key=lambda pod: str(pod["metadata"]["name"])), None)

    def _controller_revision(self, owner: Json) -> str:
        """Number the present template; one that was there before gets the highest number anew."""
        template = owner["spec"]["template"]
        name = f"{owner['metadata']['name']}-{hash_of(template)}"
        kept = owned(self.store.of("controllerrevisions"), owner)
        highest = max((item["revision"] for item in kept.values()), default=0)
        if name not in kept:
            data = {"spec": {"template": {**copy.deepcopy(template), "$patch": "replace"}}}
            metadata = {
                "name": name,
                "labels": template["metadata"].get("labels"),
                "ownerReferences": [reference("StatefulSet", owner)],
            }
            revision = {"metadata": metadata, "data": data, "revision": highest + 1}
            self.store.create("controllerrevisions", revision)
        elif kept[name]["revision"] != highest:
            self.store.patch("controllerrevisions", name, {"revision": highest + 1})
        return name

    def _deployment(self, owner: Json) -> None:
        name = owner["metadata"]["name"]
        current = self._replica_set(owner)
        hashed = current["metadata"]["labels"]["pod-template-hash"]
        pods = [
            pod
            for pod in self.store.of("pods").values()
            if pod["metadata"].get("labels", {}).get("pod-template-hash")
            and pod["metadata"]["ownerReferences"][0]["name"].startswith(f"{name}-")
        ]
        outdated = [pod for pod in pods if pod["metadata"]["labels"]["pod-template-hash"] != hashed]
        for pod in outdated:
            if not is_ending(pod):
                self.end_pod(pod, None)
        # Recreate: nothing new before all of the old is gone; ending pods of its own do not count.
        present = [pod for pod in pods if pod not in outdated and not is_ending(pod)]
        missing = 0 if outdated else owner["spec"]["replicas"] - len(present)
        for pod in present[owner["spec"]["replicas"] :]:
            self.end_pod(pod, None)
        for _ in range(max(0, missing)):
            pod_name = f"{current['metadata']['name']}-{self.store.version()}"
            template = current["spec"]["template"]
            self._make_pod(pod_name, template, reference("ReplicaSet", current), {})

    def _replica_set(self, owner: Json) -> Json:
        """Return the ReplicaSet of the present template, made or numbered anew."""
        template, name = owner["spec"]["template"], owner["metadata"]["name"]
        hashed = hash_of(template)
        kept = owned(self.store.of("replicasets"), owner)
        numbers = [int(_revision(item)) for item in kept.values()]
        found = kept.get(f"{name}-{hashed}")
        if found is None:
            labelled = copy.deepcopy(template)
            labelled["metadata"].setdefault("labels", {})["pod-template-hash"] = hashed
            metadata = {
                "name": f"{name}-{hashed}",
                "labels": labelled["metadata"]["labels"],
                "ownerReferences": [reference("Deployment", owner)],
                "annotations": {REVISION: str(max(numbers, default=0) + 1)},
            }
            item = {"metadata": metadata, "spec": {"template": labelled}}
            found = self.store.create("replicasets", item)
        elif int(_revision(found)) != max(numbers):
            note = {"metadata": {"annotations": {REVISION: str(max(numbers) + 1)}}}
            found = self.store.patch("replicasets", f"{name}-{hashed}", note)
        status = {"observedGeneration": owner["metadata"]["generation"]}
        note = {"metadata": {"annotations": {REVISION: _revision(found)}}, "status": status}
        self.store.patch("deployments", name, note)
        return found

    def _make_pod(self, name: str, template: Json, owner: Json, labels: Json) -> None:
        pod = copy.deepcopy(template)
        pod["metadata"] |= {
            "name": name,
            "labels": {**(template["metadata"].get("labels") or {}), **labels},
            "ownerReferences": [owner],
        }
        pod["status"] = {"phase": "Pending"}
        self.store.create("pods", pod)

    def _endpoints(self, service: Json) -> None:
        """List a Service's pods, as far as they are on no way out."""
        chosen = ",".join(f"{k}={v}" for k, v in service["spec"]["selector"].items())
        ready: list[Json] = []
        others: list[Json] = []
        for pod in self._living(chosen):
            address = (pod.get("status") or {}).get("podIP")
            target = {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            if address:
                (ready if is_ready(pod) else others).append({"ip": address, "targetRef": target})
        subset = {"addresses": ready, "notReadyAddresses": others}
        filled = {name: found for name, found in subset.items() if found}
        name = service["metadata"]["name"]
        if name not in self.store.of("endpoints"):
            self.store.create("endpoints", {"metadata": {"name": name}})
        self.store.patch("endpoints", name, {"subsets": [filled] if filled else None})

    def _children(self, kind: str, name: str) -> list[Json]:
        return [
            pod
            for pod in self.store.of("pods").values()
            for owner in pod["metadata"].get("ownerReferences") or ()
            if (owner["kind"], owner["name"]) == (kind, name)
        ]


REVISION = "deployment.kubernetes.io/revision"


def _revision(item: Json) -> str:
    return str(item["metadata"]["annotations"][REVISION])


def _selector(selector: Json) -> str:
    return ",".join(f"{name}={value}" for name, value in selector["matchLabels"].items())
