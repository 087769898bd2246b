"""A form becomes a request, or an error that names its field."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from gatemesh_common.messages import ActionRequest, TrialRequest
from gatemesh_console.asking import ACTIONS, FIELDS, WHOLE_POOL, build_request, check_id
from gatemesh_console.errors import BadInputError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXTRA = {"reset_brake": {"backlog": "skip"}, "set_weight": {"weight": "0.5"}}


def ask(form: dict[str, str], *, dry_run: bool = False) -> ActionRequest:
    """Build a request of ann's."""
    return build_request({"pool": "chat", **form}, "ann", NOW, dry_run=dry_run)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_can_be_asked_for_and_tried(action: str) -> None:
    """The same form asks and tries; only the kind of message differs."""
    form = {"action": action, "instance_id": "engine-0", **EXTRA.get(action, {})}
    asked, tried = ask(form), ask(form, dry_run=True)
    assert type(asked) is ActionRequest
    assert type(tried) is TrialRequest
    assert (asked.action, asked.pool, asked.requested_by) == (action, "chat", "ann")
    assert asked.instance_id == (None if action in WHOLE_POOL else "engine-0")


def test_a_request_that_is_sent_twice_is_the_same_message() -> None:
    """A double click counts once; a trial is new each time, since things change."""
    made = str(uuid4())
    form = {"action": "pause", "message_id": made}
    assert ask(form).message_id == made
    assert ask(form, dry_run=True).message_id != made


def test_a_whole_pool_may_leave_a_version() -> None:
    """Of one instance only the last step is undone."""
    assert ask({"action": "roll_back", "model_version": "v2"}).model_version == "v2"
    one = ask({"action": "roll_back", "model_version": "v2", "instance_id": "engine-0"})
    assert (one.instance_id, one.model_version) == ("engine-0", None)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        pytest.param({"action": "explode"}, "action", id="action"),
        pytest.param({}, "action", id="none"),
        pytest.param({"action": "drain"}, "instance_id", id="instance"),
        pytest.param({"action": "reset_brake"}, "backlog", id="backlog"),
        pytest.param({"action": "reset_brake", "backlog": "burn"}, "backlog", id="choice"),
        pytest.param({"action": "set_weight", "instance_id": "e"}, "weight", id="weight"),
        pytest.param({"action": "set_weight", "instance_id": "e", "weight": "2"}, "weight", id="2"),
        pytest.param({"action": "pause", "pool": ""}, "pool", id="pool"),
        pytest.param({"action": "pause", "reason": "x" * 501}, "reason", id="reason"),
        pytest.param({"action": "pause", "message_id": "x"}, "message_id", id="id"),
    ],
)
def test_a_fault_names_its_field(form: dict[str, str], field: str) -> None:
    """And says the way out."""
    with pytest.raises(BadInputError) as caught:
        ask(form)
    assert caught.value.field == field
    assert caught.value.cure


def test_fields_belong_to_actions_that_there_are() -> None:
    """A renamed action would leave its field behind."""
    assert set(FIELDS) <= set(ACTIONS)
    assert set(WHOLE_POOL) <= set(ACTIONS)


def test_an_id_is_made_or_checked() -> None:
    """It stands in an address, so it must be one."""
    assert check_id("") != check_id("")
    with pytest.raises(BadInputError):
        check_id("../x")
