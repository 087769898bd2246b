"""A request and its sender."""

from gatemesh_common.messages import TrialRequest
from gatemesh_health_manager.asked import Asked

from .samples import asked


def test_a_body_cannot_prove_its_own_sender() -> None:
    """Only the broker's word counts."""
    forged = asked("drain").model_dump() | {"proven_user": "root"}
    read = TrialRequest.model_validate(forged)
    assert Asked.of(read, None).proven_user is None
    assert Asked.of(asked("drain", proven_user="root"), "bob").proven_user == "bob"


def test_the_request_stays_as_it_was() -> None:
    """Its id above all: it is known by it."""
    request = asked("reset_brake", instance_id=None, backlog="skip", reason="looked at it")
    kept = Asked.of(request, "alice")
    assert kept.model_dump() == request.model_dump() | {"proven_user": "alice"}


def test_a_proven_name_is_told_where_it_is_another() -> None:
    """Anybody can call himself alice."""
    assert asked("drain").asker == "alice"
    assert asked("drain", proven_user="alice").asker == "alice"
    assert asked("drain", proven_user="bob").asker == "alice (user bob)"
