"""The state table, over all of it."""

from itertools import product

import pytest

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.states import (
    SERVING,
    TRANSITIONS,
    IllegalTransitionError,
    Trigger,
    next_state,
)

OUTSIDE = sorted(set(product(InstanceState, Trigger)) - set(TRANSITIONS))
NOT_YET = {InstanceState.RETIRED}
"""States that later playbooks lead to."""


@pytest.mark.parametrize(("pair", "after"), TRANSITIONS.items(), ids=str)
def test_a_pair_of_the_table_leads_on(
    pair: tuple[InstanceState, Trigger], after: InstanceState
) -> None:
    """The function says what the table says."""
    assert next_state(*pair) is after


@pytest.mark.parametrize(("state", "trigger"), OUTSIDE)
def test_a_pair_outside_the_table_raises(state: InstanceState, trigger: Trigger) -> None:
    """A stale or wrong trigger is an error, never a silent no-op."""
    with pytest.raises(IllegalTransitionError, match=f"{trigger} while {state}"):
        next_state(state, trigger)


def test_only_probation_and_clearance_lead_back_to_traffic() -> None:
    """No restart puts an instance straight back into rotation."""
    sources = {state for (state, _), after in TRANSITIONS.items() if after is InstanceState.HEALTHY}
    assert sources == {InstanceState.PROBATION, InstanceState.SUSPECT}


def test_every_state_is_left_and_reached() -> None:
    """There is no trap and no dead row."""
    states = set(InstanceState) - NOT_YET
    assert {state for state, _ in TRANSITIONS} == states
    assert set(TRANSITIONS.values()) == states


def test_every_trigger_is_used() -> None:
    """A trigger that leads nowhere is a leftover."""
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)


def test_an_operator_can_withdraw_from_every_state_but_quarantine() -> None:
    """Whatever goes on, a person has the last word."""
    withdrawn = {state for state, trigger in TRANSITIONS if trigger is Trigger.WITHDRAWN}
    assert withdrawn == set(InstanceState) - NOT_YET - {InstanceState.QUARANTINED}


def test_serving_states() -> None:
    """A doubted instance still serves."""
    assert {InstanceState.HEALTHY, InstanceState.SUSPECT} == SERVING
