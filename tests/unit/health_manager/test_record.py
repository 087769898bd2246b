"""What a record says about itself."""

from dataclasses import replace
from typing import Any

import pytest

from gatemesh_common.messages import Action, InstanceState
from gatemesh_health_manager.record import Condition

from .samples import NOW, at, flight, incident, record


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


@pytest.mark.parametrize(
    ("condition", "playbook", "steps"),
    [
        (Condition.A, "restart", ("drain", "restart")),
        (Condition.B, "restart", ("eject", "confirm", "restart")),
        (Condition.C, "restart", ("shift", "drain", "restart")),
        (Condition.D, "replace", ("eject", "replace")),
        (Condition.D, "restart", ("eject", "restart")),
        (Condition.OWN, "stop", ("drain", "stop")),
        (Condition.OWN, "replace", ("eject", "replace")),
        (Condition.OPERATOR, "repair", ("eject", "repair", "restart")),
        (Condition.OPERATOR, "roll_back", ("eject", "restart")),
        (Condition.EXIT, "restart", ("drain", "restart")),
    ],
)
def test_an_incident_without_steps_goes_on_as_it_began(
    condition: Condition, playbook: str, steps: tuple[str, ...]
) -> None:
    """It was stored by an earlier release, whose playbooks were fixed."""
    assert incident(condition=condition, playbook=playbook).plan == steps


def test_steps_that_are_stored_count() -> None:
    """Whatever the rules say since."""
    assert incident(steps=("eject", "stop")).plan == ("eject", "stop")


@pytest.mark.parametrize(
    ("fields", "due"),
    [
        pytest.param({"wanted_from": at(0)}, Action.RESTART, id="just-now"),
        pytest.param({"wanted_from": at(1)}, None, id="not-yet"),
        pytest.param({"wanted_from": None}, Action.RESTART, id="without-a-moment"),
        pytest.param({"wanted_from": at(0), "flight": flight(Action.EJECT)}, None, id="in-flight"),
        pytest.param({"wanted": None}, None, id="not-wanted"),
    ],
)
def test_what_is_wanted_is_due_after_its_back_off(
    fields: dict[str, Any], due: Action | None
) -> None:
    """And after the command that is in flight."""
    assert record(**({"wanted": Action.RESTART} | fields)).due_by(NOW) is due


def test_a_copy_with_other_values_is_like_a_record_made_anew() -> None:
    """And the one that it was made from stays as it was."""
    before = record(penalty=3.0)
    after = before.having(penalty=5.0, weight=0.5)
    assert after == replace(before, penalty=5.0, weight=0.5)
    assert before == record(penalty=3.0)


def test_a_field_that_is_none_is_named() -> None:
    """A slip must not make a record that keeps what nobody stores."""
    with pytest.raises(TypeError, match="no field penalty_points"):
        record().having(penalty_points=1.0)
