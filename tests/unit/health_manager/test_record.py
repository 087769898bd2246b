"""What a record says about itself."""

import pytest

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.record import Condition, Playbook

from .samples import record


@pytest.mark.parametrize("state", InstanceState)
def test_serving_is_a_matter_of_state(state: InstanceState) -> None:
    """Two states get requests of clients."""
    assert record(state).serving is (state in {InstanceState.HEALTHY, InstanceState.SUSPECT})


def test_an_instance_is_observed_once_its_address_is_known() -> None:
    """One that was only named by an alert is not acted upon."""
    assert record().observed
    assert not record(base_url=None).observed


def test_names_that_are_stored_stay() -> None:
    """Rows of earlier releases must be read by later ones."""
    named = {"exit", "probes", "overdue", "operator", "own", "roll_back"}
    assert {str(c) for c in Condition} == {*"ABCD"} | named
    assert {str(p) for p in Playbook} == {"restart", "stop", "repair", "replace", "roll_back"}
