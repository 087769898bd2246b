"""The instances of a namespace as they are now."""

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError, Observation, Phase
from gatemesh_executor.backends.kubernetes import owners
from gatemesh_executor.backends.kubernetes.api import DEPLOYMENTS, STATEFUL_SETS, Object, Resource
from gatemesh_executor.backends.kubernetes.fleet import EXITS_KEPT, PodFleet

from .conftest import RUNNING, Script, owner_of, pod_of, status


@pytest.fixture
def fleet() -> PodFleet:
    """Give a fleet that knows nothing yet."""
    return PodFleet(Script().api)


def learn(fleet: PodFleet, owner: Object, resource: Resource = STATEFUL_SETS) -> None:
    """Let a fleet see an owner."""
    fleet.owners[resource].objects[owner["metadata"]["name"]] = owner
    fleet.owners[resource].on_change(owner)


def see(fleet: PodFleet, pod: Object) -> None:
    """Let a fleet see a pod."""
    fleet.pods.objects[pod["metadata"]["name"]] = pod
    fleet.pods.on_change(pod)


def test_nothing_is_claimed_before_it_is_listed(fleet: PodFleet) -> None:
    """Silence is neither a stopped nor a running engine."""
    with pytest.raises(BackendUnavailableError):
        fleet.believe()


async def test_a_missing_right_ends_it() -> None:
    """The executor ends with the words that name the verb."""
    with pytest.raises(SettingsError, match="lacks the verb 'list'"):
        await PodFleet(Script([status(403) for _ in range(3)]).api).run()


def test_a_lasting_fault_costs_nothing(fleet: PodFleet) -> None:
    """It is asked for several times a second."""
    for _ in range(3):
        with pytest.raises(BackendUnavailableError) as caught:
            fleet.believe()
    assert len(caught.traceback) == 2


def test_every_instance_is_observed(fleet: PodFleet) -> None:
    """Those without a pod are stopped."""
    learn(fleet, owner_of())
    see(fleet, pod_of("vllm-1", RUNNING))
    found = fleet.observations()
    assert found["vllm-0"] == Observation(Phase.STOPPED)
    assert found["vllm-1"].life_id == "u1"
    assert (len(fleet), set(fleet)) == (2, {"vllm-0", "vllm-1"})


def test_one_that_is_not_wanted_any_more_stays_known(fleet: PodFleet) -> None:
    """That it ended has to be told."""
    learn(fleet, owner_of())
    learn(fleet, owner_of(replicas=1))
    assert set(fleet) == {"vllm-0", "vllm-1"}


def test_the_version_is_that_of_the_pod(fleet: PodFleet) -> None:
    """While a new template rolls out, both versions serve."""
    owner, pod = owner_of(), pod_of("vllm-0", RUNNING)
    owner["spec"]["template"]["metadata"]["annotations"] = {owners.MODEL_VERSION: "m@2"}
    pod["metadata"]["annotations"] = {owners.MODEL_VERSION: "m@1"}
    learn(fleet, owner)
    see(fleet, pod)
    assert (fleet["vllm-0"].model_version, fleet["vllm-1"].model_version) == ("m@1", "m@2")


def test_faults_come_and_go(fleet: PodFleet) -> None:
    """An owner that was mended is acted on."""
    learn(fleet, owner_of(replicas=2), DEPLOYMENTS)
    assert len(fleet.faults()) == 1
    assert not fleet
    learn(fleet, owner_of(replicas=1), DEPLOYMENTS)
    assert fleet.faults() == []
    assert list(fleet) == ["vllm"]


def test_one_id_has_one_owner(fleet: PodFleet) -> None:
    """The first keeps it; the other is named."""
    learn(fleet, owner_of())
    learn(fleet, owner_of("vllm-0", replicas=1), DEPLOYMENTS)
    assert fleet.slot("vllm-0").resource is STATEFUL_SETS
    assert "vllm-0 is taken" in fleet.faults()[0]


def test_exit_codes_are_kept_a_while(fleet: PodFleet) -> None:
    """They are asked for when the pod is gone already."""
    for number in range(EXITS_KEPT + 1):
        ended = {"terminated": {"exitCode": 137}}
        see(fleet, pod_of("vllm-0", ended, uid=f"u{number}"))
    assert fleet.exit_code(f"u{EXITS_KEPT}") == 137
    assert fleet.exit_code("u0") is None


def test_pods_are_found_by_uid(fleet: PodFleet) -> None:
    """A name is taken over by the next pod."""
    see(fleet, pod_of("vllm-0", uid="new"))
    assert fleet.has_pod("new")
    assert not fleet.has_pod("old")
