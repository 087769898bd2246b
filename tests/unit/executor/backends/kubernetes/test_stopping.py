"""Ending one pod."""

from typing import Any

import pytest
from tests.unit.executor.conftest import Time

from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.backends.kubernetes.api import EvictionRefusedError
from gatemesh_executor.backends.kubernetes.stopping import (
    TRIES,
    PodEnder,
    delete_options,
    is_meant,
)

from .conftest import RUNNING, FakeAnswer, Script, pod_of, status

DONE = FakeAnswer(201, {})
VERSION = FakeAnswer(200, {"resources": []})
BUDGET = status(429, "budget", "DisruptionBudget")


@pytest.mark.parametrize(
    ("pod", "life_id", "meant"),
    [
        (pod_of(state=RUNNING), None, True),
        (pod_of(state=RUNNING), "u1", True),
        (pod_of(state=RUNNING), "u2", False),
        (pod_of(state=RUNNING, restarts=1), "u1", False),
        (pod_of(state=RUNNING, restarts=1), "u1/1", True),
        (pod_of(state={"terminated": {"exitCode": 1}}, restarts=1), "u1", True),
        (pod_of(), "u2", False),
    ],
)
def test_which_pod_is_meant(pod: dict[str, Any], life_id: str | None, meant: bool) -> None:  # noqa: FBT001
    """The pod of the named life, unless another life runs in it by now."""
    assert is_meant(pod, life_id) is meant


@pytest.mark.parametrize(("grace_s", "sent"), [(0.0, 1), (0.3, 1), (60.0, 60), (60.2, 61)])
def test_the_grace_is_never_zero(grace_s: float, sent: int) -> None:
    """Zero would drop the record while the process may run on."""
    options = delete_options(pod_of(), grace_s)
    assert options["gracePeriodSeconds"] == sent
    assert options["preconditions"] == {"uid": "u1", "resourceVersion": "7"}


def ender(*answers: FakeAnswer, after_s: float | None = None) -> tuple[PodEnder, Script, Time]:
    """Return an ender on a script."""
    script, time = Script(list(answers)), Time()
    return PodEnder(script.api, after_s, time.pace), script, time


def found(**kind: Any) -> FakeAnswer:
    """Return the answer with a pod in it."""
    return FakeAnswer(200, pod_of(state=RUNNING, **kind))


def methods(script: Script) -> list[str]:
    """Return what was asked."""
    return [call.verb for call in script.calls]


async def test_a_pod_is_evicted() -> None:
    """The budget has its say."""
    one, script, _ = ender(found(), VERSION, DONE)
    assert await one.end("vllm-0", "u1", 60.0) is not None
    assert script.calls[-1].resource == "pods/eviction"


async def test_a_conflict_is_read_again() -> None:
    """It may not be meant any more."""
    one, script, _ = ender(found(), VERSION, status(409), found(uid="u2"))
    assert await one.end("vllm-0", "u1", 60.0) is None
    assert methods(script) == ["get", "list", "create", "get"]


async def test_endless_conflicts_are_told() -> None:
    """The command is tried again later."""
    conflicts = [answer for _ in range(TRIES) for answer in (found(), status(409))]
    one, _, _ = ender(conflicts[0], VERSION, *conflicts[1:])
    with pytest.raises(BackendUnavailableError, match="keeps changing"):
        await one.end("vllm-0", "u1", 60.0)


async def test_one_that_is_gone_is_not_there() -> None:
    """That was the aim."""
    one, _, _ = ender(status(404))
    assert await one.end("vllm-0", "u1", 60.0) is None


async def test_one_that_ends_already_is_made_to_hurry() -> None:
    """No budget can save it any more."""
    one, script, _ = ender(found(ending=True), DONE)
    await one.end("vllm-0", "u1", 2.0)
    assert (script.calls[-1].verb, script.calls[-1].body["gracePeriodSeconds"]) == ("delete", 2)


async def test_one_that_serves_nobody_is_deleted() -> None:
    """Budgets count pods that are dead, and would keep them."""
    one, script, _ = ender(FakeAnswer(200, pod_of(state={"terminated": {"exitCode": 1}})), DONE)
    await one.end("vllm-0", "u1", 2.0)
    assert methods(script) == ["get", "delete"]


async def test_patience_with_a_budget_has_an_end_where_that_is_set() -> None:
    """Counted from the first refusal."""
    one, script, time = ender(found(), VERSION, BUDGET, found(), BUDGET, DONE, after_s=30.0)
    with pytest.raises(EvictionRefusedError):
        await one.end("vllm-0", "u1", 60.0)
    time.elapsed_s += 30.0
    assert await one.end("vllm-0", "u1", 60.0) is not None
    assert methods(script)[-2:] == ["create", "delete"]


async def test_otherwise_a_budget_is_kept_for_ever() -> None:
    """It is the owner's word."""
    one, _, time = ender(found(), VERSION, BUDGET, found(), BUDGET)
    for _ in range(2):
        with pytest.raises(EvictionRefusedError):
            await one.end("vllm-0", "u1", 60.0)
        time.elapsed_s += 86_400.0


@pytest.mark.parametrize("answer", [DONE, status(404), status(409)])
async def test_a_discard_never_fails_for_what_is_gone(answer: FakeAnswer) -> None:
    """Another pod of that name is left alone."""
    one, script, _ = ender(answer)
    await one.discard(pod_of())
    assert script.calls[0].body["preconditions"] == {"uid": "u1"}
