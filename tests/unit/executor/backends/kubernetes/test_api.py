"""Requests to the Kubernetes API and its refusals."""

import aiohttp
import pytest

from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.backends.kubernetes.api import (
    DEPLOYMENTS,
    PODS,
    Call,
    ConflictError,
    EvictionRefusedError,
    ExpiredError,
    NotThereError,
    RejectedError,
)

from .conftest import FakeAnswer, Script, status


def test_paths() -> None:
    """Core kinds and grouped ones live in different places."""
    assert PODS.path("n") == "/api/v1/namespaces/n/pods"
    assert DEPLOYMENTS.path("n", "d", "scale") == ("/apis/apps/v1/namespaces/n/deployments/d/scale")


@pytest.mark.parametrize(
    ("call", "verb", "resource"),
    [
        (Call("GET", PODS.path("n")), "list", "pods"),
        (Call("GET", PODS.path("n"), (("watch", "1"),)), "watch", "pods"),
        (Call("GET", PODS.path("n", "p")), "get", "pods"),
        (Call("POST", PODS.path("n", "p", "eviction")), "create", "pods/eviction"),
        (Call("PATCH", DEPLOYMENTS.path("n", "d", "scale")), "patch", "deployments/scale"),
        (Call("DELETE", PODS.path("n", "p")), "delete", "pods"),
        (Call("GET", "/api/v1"), "list", ""),
    ],
)
def test_a_call_is_named_as_a_role_names_it(call: Call, verb: str, resource: str) -> None:
    """The operator copies both words into the role."""
    assert (call.verb, call.resource) == (verb, resource)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (401, SettingsError),
        (403, SettingsError),
        (404, NotThereError),
        (409, ConflictError),
        (410, ExpiredError),
        (422, RejectedError),
        (429, BackendUnavailableError),
        (500, BackendUnavailableError),
        (504, BackendUnavailableError),
    ],
)
async def test_each_refusal_is_told_apart(code: int, kind: type[GatemeshError]) -> None:
    """By what a caller does about it."""
    with pytest.raises(kind) as caught:
        await Script([status(code, "because")]).api.read(PODS, "p")
    assert type(caught.value) is kind
    assert "because" in str(caught.value)


async def test_a_spent_budget_is_no_busy_api() -> None:
    """Both are 429; only one may be overruled."""
    script = Script([status(429, "budget", "DisruptionBudget")])
    with pytest.raises(EvictionRefusedError):
        await script.api.evict("v1", "p", {})


async def test_a_missing_verb_is_named_with_the_way_out() -> None:
    """Whoever reads it can mend the role."""
    with pytest.raises(SettingsError, match=r"'patch' on 'deployments/scale'.*executor-rbac"):
        await Script([status(403)]).api.change(DEPLOYMENTS, "d", {}, sub="scale")


@pytest.mark.parametrize(
    "fault", [aiohttp.ClientError(), TimeoutError(), OSError("refused"), FakeAnswer(200, "{cut")]
)
async def test_silence_is_told(fault: FakeAnswer | Exception) -> None:
    """Nothing is known to have changed."""
    with pytest.raises(BackendUnavailableError):
        await Script([fault]).api.read(PODS, "p")


async def test_a_refusal_without_a_status_is_told() -> None:
    """A proxy in between answers as it likes."""
    with pytest.raises(BackendUnavailableError, match="bad gateway"):
        await Script([FakeAnswer(502, "bad gateway")]).api.read(PODS, "p")


async def test_a_watch_gives_events_until_an_error() -> None:
    """410 comes as an event as well as an answer."""
    event = {"type": "ADDED", "object": {"metadata": {}}}
    error = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
    script = Script([FakeAnswer(200, "", [event, error])])
    async with script.api.following(PODS, "a=b", "5", 20) as events:
        assert await anext(events) == event
        with pytest.raises(ExpiredError, match="too old"):
            await anext(events)
    assert dict(script.calls[0].query)["resourceVersion"] == "5"


@pytest.mark.parametrize(
    ("resources", "version"),
    [
        ([{"name": "pods"}, {"name": "pods/eviction", "version": "v1beta1"}], "v1beta1"),
        ([{"name": "pods"}], "v1"),
    ],
)
async def test_the_cluster_says_which_evictions_it_knows(
    resources: list[dict[str, str]], version: str
) -> None:
    """Clusters older than 1.22 know only the beta."""
    script = Script([FakeAnswer(200, {"resources": resources})])
    assert await script.api.eviction_version() == version
