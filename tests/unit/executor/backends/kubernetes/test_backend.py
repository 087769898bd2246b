"""What the backend decides; what it does is in the contract tests."""

from typing import Any

import pytest

from gatemesh_executor.backends.base import BackendUnavailableError, Ending, StartFailedError
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Resource
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend, refuse_unwanted
from gatemesh_executor.backends.kubernetes.fleet import PodFleet
from gatemesh_executor.backends.kubernetes.owners import slots

from .conftest import Script, owner_of, pod_of


@pytest.mark.parametrize(
    ("resource", "made", "now", "wanted"),
    [
        (STATEFUL_SETS, {}, {}, True),
        (STATEFUL_SETS, {}, {"replicas": 1}, False),
        (STATEFUL_SETS, {"ordinals": {"start": 5}}, {"ordinals": {"start": 5}}, True),
        (DEPLOYMENTS, {"replicas": 1}, {"replicas": 1}, True),
        (DEPLOYMENTS, {"replicas": 1}, {"replicas": 0}, False),
    ],
)
def test_an_owner_may_not_want_the_instance(
    resource: Resource,
    made: dict[str, Any],
    now: dict[str, Any],
    wanted: bool,  # noqa: FBT001
) -> None:
    """Waiting for its pod would be in vain."""
    slot = slots(owner_of(**made), resource)[-1]
    if wanted:
        refuse_unwanted(slot, owner_of(**now))
        return
    with pytest.raises(StartFailedError, match="does not want"):
        refuse_unwanted(slot, owner_of(**now))


def test_an_owner_may_be_gone() -> None:
    """Nobody would make a pod."""
    slot = slots(owner_of(), STATEFUL_SETS)[0]
    with pytest.raises(StartFailedError, match="gone"):
        refuse_unwanted(slot, None)


@pytest.mark.parametrize(
    ("code", "waited_s", "ending"),
    [
        (0, 99.0, Ending.LEFT),
        (143, 1.0, Ending.LEFT),
        (137, 1.0, Ending.KILLED),
        (None, 59.9, Ending.LEFT),
        (None, 60.0, Ending.KILLED),
    ],
)
def test_how_a_life_ended(code: int | None, waited_s: float, ending: Ending) -> None:
    """By the exit code where one was seen, else by the time it took."""
    fleet = PodFleet(Script().api)
    if code is not None:
        fleet.pods.on_change(pod_of(state={"terminated": {"exitCode": code}}))
    backend = KubernetesBackend(Script().api, fleet)
    assert backend._ending("u1", waited_s, 60.0) is ending


async def test_nothing_is_done_on_hearsay() -> None:
    """While the watches are cut, the step is tried again."""
    fleet = PodFleet(Script().api)
    backend = KubernetesBackend(Script().api, fleet)
    [slot, _] = slots(owner_of(), STATEFUL_SETS)
    with pytest.raises(BackendUnavailableError):
        await backend.stop(slot.instance, None, 1.0)
    with pytest.raises(BackendUnavailableError):
        await backend.start(slot.instance)
