"""How far an init container is with its order."""

from typing import Any

import pytest

from gatemesh_executor.backends.kubernetes.repull import (
    PULLER,
    Pull,
    failure_of,
    has_puller,
    pull_state,
)

from .conftest import pod_of


def ended(code: int, message: str) -> dict[str, Any]:
    """Return the state of a container that ended."""
    return {"terminated": {"exitCode": code, "message": message}}


def pulling(state: dict[str, Any], last: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pod whose init container is in a state."""
    pod = pod_of(phase="Pending")
    status = {"name": PULLER, "state": state, "lastState": last or {}}
    pod["status"]["initContainerStatuses"] = [status]
    return pod


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        pytest.param(None, Pull.MISSED, id="gone"),
        pytest.param(pod_of(uid="u2"), Pull.MISSED, id="another-pod"),
        pytest.param(pod_of(), Pull.UNDER_WAY, id="unscheduled"),
        pytest.param(pulling({"running": {}}), Pull.UNDER_WAY, id="running"),
        pytest.param(pulling(ended(0, "order-1\n")), Pull.DONE, id="done"),
        pytest.param(pulling(ended(0, "order-0")), Pull.MISSED, id="older-order"),
        pytest.param(pulling(ended(0, "")), Pull.MISSED, id="no-order"),
        pytest.param(pulling(ended(1, "order-1")), Pull.FAILED, id="failed"),
        pytest.param(
            pulling({"waiting": {"reason": "CrashLoopBackOff"}}), Pull.FAILED, id="failed-before"
        ),
    ],
)
def test_pull_state(pod: dict[str, Any] | None, state: Pull) -> None:
    """Only the order's own id proves that it was obeyed."""
    assert pull_state(pod, "u1", "order-1") is state


def test_its_last_words() -> None:
    """Whether it is about to try again or not."""
    assert failure_of(pulling(ended(1, "no space"))) == "code 1 no space"
    again = pulling({"waiting": {}}, ended(2, "checksum"))
    assert failure_of(again) == "code 2 checksum"
    assert failure_of(None) == "no word"


def test_a_pod_without_one_cannot_pull() -> None:
    """It is a cold start then."""
    pod = pod_of()
    assert not has_puller(pod)
    pod["spec"]["initContainers"] = [{"name": "other"}, {"name": PULLER}]
    assert has_puller(pod)
