"""One recorded conversation: the fake and the real API server must both answer it as recorded."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gatemesh_executor.backends.kubernetes.api import (
    MERGE,
    PODS,
    STATEFUL_SETS,
    STRATEGIC_MERGE,
    Call,
    KubeApi,
    Resource,
    status_of,
)
from gatemesh_executor.pace import Pace

from .kube_cluster import BUDGETS, Cluster, forget
from .kube_owners import owner_of

pytestmark = pytest.mark.integration

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RECORD = Path(__file__).parents[2] / "data" / "kube_conversation.json"
PDB = {
    "apiVersion": "policy/v1beta1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "one"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "vllm"}}},
}
Answer = tuple[int, dict[str, Any]]


class Speaker:
    """Says one thing after the other and writes down what is told in answer."""

    def __init__(self, cluster: Cluster) -> None:
        self._api: KubeApi = cluster.admin
        self.told: dict[str, Any] = {}
        self._pace = Pace()

    async def ask(
        self,
        method: str,
        resource: Resource,
        name: str = "",
        *,
        sub: str = "",
        body: Any = None,
        kind: str = "application/json",
        **query: str,
    ) -> Answer:
        """Send a request and return status and body."""
        path = resource.path(self._api.namespace, name, sub)
        call = Call(method, path, tuple(query.items()), body, kind)
        timeout = aiohttp.ClientTimeout(total=30)
        async with await self._api.connection.send(call, timeout) as response:
            text = await response.text()
        if query.get("watch") and response.status == HTTPStatus.OK:
            return response.status, {"events": [json.loads(line) for line in text.splitlines()]}
        return response.status, dict(status_of(text))

    def note(self, what: str, answer: Answer, *fields: str) -> dict[str, Any]:
        """Write down the status, and the reason of a refusal or these fields; return the body."""
        status, body = answer
        told: dict[str, Any] = {"code": status}
        if status >= 400:
            causes = (body.get("details") or {}).get("causes") or ()
            told |= {"reason": body.get("reason")}
            told |= {"causes": [cause.get("reason") for cause in causes]} if status == 429 else {}
        told |= {field: _at(body, field) for field in fields}
        self.told[what] = told
        return body

    async def until(
        self, fits: Callable[[Answer], bool], ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Ask until the answer fits."""
        deadline = self._pace.now() + 30
        while not fits(answer := await ask()):
            assert self._pace.now() < deadline, answer
            await self._pace.sleep(0.05)
        return answer


def _at(body: Any, field: str) -> Any:
    """Return the value at a path of names."""
    for part in field.split("/"):
        body = body.get(part) if isinstance(body, dict) else None
    return body


def is_ready(answer: Answer) -> bool:
    """Return True for a pod that says that it is ready."""
    conditions = answer[1].get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def talk_of_owners(speaker: Speaker, node: str) -> None:
    """Create, refuse, scale, and replace a template."""
    item = owner_of(STATEFUL_SETS, "vllm", "steady", node, replicas=0)
    note, ask = speaker.note, speaker.ask
    note("no such pod", await ask("GET", PODS, "vllm-0"))
    bad = {**item, "metadata": {**item["metadata"], "name": "No Name!"}}
    note("a bad name", await ask("POST", STATEFUL_SETS, body=bad))
    made = note("create", await ask("POST", STATEFUL_SETS, body=item), "spec/replicas")
    note("create again", await ask("POST", STATEFUL_SETS, body=item))
    one = {"spec": {"replicas": 1}}
    scale = await ask("PATCH", STATEFUL_SETS, "vllm", sub="scale", body=one, kind=MERGE)
    note("scale", scale, "kind", "spec/replicas")
    note("scale nobody", await ask("PATCH", STATEFUL_SETS, "no", sub="scale", body=one, kind=MERGE))
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, **one}
    answer = await ask("PATCH", STATEFUL_SETS, "vllm", body=stale, kind=MERGE)
    note("a stale change", answer)


async def talk_of_templates(speaker: Speaker) -> None:
    """Replace a whole template, as a roll back does."""
    note, ask = speaker.note, speaker.ask
    _, owner = await ask("GET", STATEFUL_SETS, "vllm")
    spec = owner["spec"]["template"]["spec"]
    labels = owner["spec"]["template"]["metadata"]["labels"]
    template = {"$patch": "replace", "metadata": {"labels": labels}, "spec": spec}
    answer = await ask(
        "PATCH",
        STATEFUL_SETS,
        "vllm",
        body={"spec": {"template": template}},
        kind=STRATEGIC_MERGE,
    )
    note(
        "replace the template", answer, "spec/template/metadata/annotations", "metadata/generation"
    )
    replaced = await speaker.until(
        lambda found: (
            found[1]["status"].get("observedGeneration") == answer[1]["metadata"]["generation"]
        ),
        lambda: ask("GET", STATEFUL_SETS, "vllm"),
    )
    assert replaced[1]["status"]["updateRevision"].startswith("vllm-")


async def talk_of_labels(speaker: Speaker) -> dict[str, Any]:
    """Select by labels, and change them for one pod only."""
    note, ask = speaker.note, speaker.ask
    _, pod = await speaker.until(is_ready, lambda: ask("GET", PODS, "vllm-0"))
    for selector in (
        "gatemesh.io/pool",
        "gatemesh.io/pool=chat",
        "gatemesh.io/pool=x",
        "app!=vllm",
    ):
        _, found = await ask("GET", PODS, labelSelector=selector)
        speaker.told[f"list {selector}"] = [item["metadata"]["name"] for item in found["items"]]
    uid = pod["metadata"]["uid"]
    for what, meant, value in (
        ("a label of another pod", "0" * 36, "true"),
        ("a label", uid, "true"),
        ("no label", uid, None),
    ):
        body = {"metadata": {"uid": meant, "labels": {"serving": value}}}
        answer = await ask("PATCH", PODS, "vllm-0", body=body, kind=MERGE)
        note(what, answer, *(["metadata/labels/serving"] if answer[0] == 200 else []))
    _, pod = await ask("GET", PODS, "vllm-0")
    return pod


async def talk_of_ends(speaker: Speaker, pod: dict[str, Any]) -> None:
    """Evict and delete, with preconditions and a budget."""
    note, ask = speaker.note, speaker.ask
    uid, version = pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]

    async def evict(**conditions: str) -> Answer:
        body = {
            "apiVersion": "policy/v1beta1",
            "kind": "Eviction",
            "metadata": {"name": "vllm-0"},
            "deleteOptions": {"gracePeriodSeconds": 20, "preconditions": conditions},
        }
        return await ask("POST", PODS, "vllm-0", sub="eviction", body=body)

    note("evict another pod", await evict(uid="0" * 36))
    note("evict an older version", await evict(uid=uid, resourceVersion="1"))
    options = {"preconditions": {"uid": "0" * 36}}
    note("delete another pod", await ask("DELETE", PODS, "vllm-0", body=options))
    await ask("POST", BUDGETS, body=PDB)
    spent = await speaker.until(
        lambda told: told[0] == 429, lambda: evict(uid=uid, resourceVersion="1")
    )
    note("a spent budget", spent)
    note("delete the budget", await ask("DELETE", BUDGETS, "one", body={}))
    done = await speaker.until(
        lambda told: told[0] not in (409, 429), lambda: evict(uid=uid, resourceVersion=version)
    )
    note("evict", done, "status")
    _, ending = await ask("GET", PODS, "vllm-0")
    speaker.told["ending"] = {
        "deletionTimestamp": "deletionTimestamp" in ending["metadata"],
        "grace": ending["metadata"].get("deletionGracePeriodSeconds"),
    }


async def talk_of_watches(speaker: Speaker, pod: dict[str, Any]) -> None:
    """Watch from a version on, and from one that is forgotten."""
    ask, version = speaker.ask, pod["metadata"]["resourceVersion"]
    _, after = await speaker.until(
        lambda found: found[0] == 200 and found[1]["metadata"]["uid"] != pod["metadata"]["uid"],
        lambda: ask("GET", PODS, "vllm-0"),
    )
    query = {"labelSelector": "app=vllm", "watch": "1", "timeoutSeconds": "1"}
    _, told = await ask("GET", PODS, resourceVersion=version, **query)
    kinds = [event["type"] for event in told["events"]]
    speaker.told["watch"] = {
        "began": kinds[0],
        "deleted, then added": "ADDED" in kinds[kinds.index("DELETED") :],
    }
    assert after["metadata"]["name"] == "vllm-0"


async def talk_of_the_past(speaker: Speaker, cluster: Cluster) -> None:
    """Watch from a version that is forgotten: of a kind that has come later."""
    things = await later_kind(cluster)
    definition = f"{DEFINITIONS}/{things.plural}.{things.group}"
    query = {"watch": "1", "timeoutSeconds": "1", "resourceVersion": "1"}
    code, told = await speaker.until(
        lambda answer: answer[0] != 404, lambda: speaker.ask("GET", things, **query)
    )
    error = told["events"][0]
    speaker.told["watch from long ago"] = {
        "code": code,
        "type": error["type"],
        "error": error["object"]["code"],
        "reason": error["object"]["reason"],
    }
    await forget(cluster.admin, definition)


async def later_kind(cluster: Cluster) -> Resource:
    """Return a kind whose history begins now."""
    if cluster.fake is not None:
        cluster.fake.store.compact()
        return Resource("later.example", "v1", "things")
    group = f"{cluster.admin.namespace}.example"
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [version],
        },
    }
    await cluster.admin.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition
    )
    return Resource(group, "v1", "things")


async def test_both_answer_as_recorded(cluster: Cluster) -> None:
    """What the other tests take from the fake is what a cluster says."""
    speaker = Speaker(cluster)
    await talk_of_owners(speaker, cluster.node.name)
    pod = await talk_of_labels(speaker)
    await talk_of_ends(speaker, pod)
    await talk_of_watches(speaker, pod)
    await talk_of_templates(speaker)
    await talk_of_the_past(speaker, cluster)
    assert speaker.told == json.loads(RECORD.read_text())
