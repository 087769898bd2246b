"""What a pod says of the engine in it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gatemesh_executor.backends.base import Observation, Phase
from gatemesh_executor.backends.kubernetes import pods

from .conftest import RUNNING, pod_of

STARTED = datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)
ENDED = {"terminated": {"exitCode": 0}}


def waiting(reason: str) -> dict[str, Any]:
    """Return the state of a container that waits."""
    return {"waiting": {"reason": reason}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(None, Observation(Phase.STOPPED), id="none"),
        pytest.param(pod_of(phase="Pending"), Observation(Phase.STARTING), id="unscheduled"),
        pytest.param(
            pod_of(state=waiting("PodInitializing")), Observation(Phase.STARTING), id="init"
        ),
        pytest.param(
            pod_of(state=RUNNING), Observation(Phase.RUNNING, "u1", STARTED), id="running"
        ),
        pytest.param(
            pod_of(state=RUNNING, restarts=2),
            Observation(Phase.RUNNING, "u1/2", STARTED),
            id="started-again",
        ),
        pytest.param(
            pod_of(state=RUNNING, ending=True),
            Observation(Phase.STOPPING, "u1", STARTED),
            id="ending",
        ),
        pytest.param(
            pod_of(state=ENDED, ending=True),
            Observation(Phase.STOPPING, exit_code=0),
            id="ended-while-ending",
        ),
        pytest.param(pod_of(state=ENDED), Observation(Phase.EXITED, exit_code=0), id="exited"),
        pytest.param(
            pod_of(state=waiting("CrashLoopBackOff"), last=ENDED),
            Observation(Phase.EXITED, exit_code=0),
            id="back-off",
        ),
        pytest.param(pod_of(phase="Failed"), Observation(Phase.EXITED), id="evicted-by-its-node"),
        pytest.param(
            pod_of(state=waiting("ImagePullBackOff")), Observation(Phase.FAILED), id="no-image"
        ),
    ],
)
def test_observation(pod: dict[str, Any] | None, expected: Observation) -> None:
    """Each state of a pod has one meaning."""
    assert pods.observation(pod) == expected


@pytest.mark.parametrize("reason", sorted(pods.GIVEN_UP))
def test_what_the_kubelet_gives_up_is_trouble(reason: str) -> None:
    """The restart budget counts it."""
    assert reason in (pods.trouble(pod_of(state=waiting(reason))) or "")


def test_an_init_container_that_crashes_is_trouble() -> None:
    """The engine would never begin."""
    pod = pod_of(phase="Pending")
    pod["status"]["initContainerStatuses"] = [{"name": "w", "state": waiting("CrashLoopBackOff")}]
    assert pods.observation(pod).phase is Phase.FAILED


def test_the_engine_is_the_container_that_is_named() -> None:
    """A side-car must not pass for the engine."""
    spec = {"containers": [{"name": "proxy"}, {"name": "vllm"}]}
    assert pods.engine_container(spec, None)["name"] == "proxy"
    assert pods.engine_container(spec, {pods.DEFAULT_CONTAINER: "vllm"})["name"] == "vllm"
    assert pods.engine_container(spec, {pods.DEFAULT_CONTAINER: "absent"})["name"] == "proxy"


@pytest.mark.parametrize(("life", "same"), [("u1", True), ("u1/3", True), ("u12", False)])
def test_lives_of_one_pod(life: str, same: bool) -> None:  # noqa: FBT001
    """Uids are compared whole."""
    assert pods.is_of_pod(life, "u1") is same


def test_the_life_that_runs_stands_for_the_instance() -> None:
    """While an early successor starts, the old one is what serves."""
    old = pod_of("a", RUNNING, uid="old", created="2026-01-01T12:00:00Z", ending=True)
    new = pod_of("b", uid="new", created="2026-01-01T12:00:09Z", phase="Pending")
    assert pods.choose([new, old]) is old
    both = pod_of("b", RUNNING, uid="new", created="2026-01-01T12:00:09Z")
    assert pods.choose([both, old]) is old


def test_what_ended_makes_way() -> None:
    """A failed pod that nobody removed hides nothing."""
    dead = pod_of("a", uid="dead", created="2026-01-01T12:00:00Z", phase="Failed")
    new = pod_of("b", uid="new", created="2026-01-01T12:00:09Z", phase="Pending")
    assert pods.choose([new, dead]) is new
    assert pods.choose([]) is None
