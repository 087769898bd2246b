"""Requests, checked before they are sent."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gatemesh_ctl.actions import ACTIONS, EITHER_ACTIONS, POOL_ACTIONS
from gatemesh_ctl.asking import (
    build_request,
    check_action,
    check_backlog,
    check_weight,
    pool_of_instance,
    pool_to_hold,
)
from gatemesh_ctl.errors import CtlError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_of_the_message_can_be_asked(action: str) -> None:
    """And is told what it lacks or has too much."""
    of_pool = action in POOL_ACTIONS
    if action in EITHER_ACTIONS:
        check_action(action, None)
        check_action(action, "engine-0")
        return
    check_action(action, None if of_pool else "engine-0")
    with pytest.raises(CtlError, match="--pool" if of_pool else "needs an instance"):
        check_action(action, "engine-0" if of_pool else None)


def test_an_unknown_action_lists_the_known() -> None:
    """A typing error is corrected at once."""
    with pytest.raises(CtlError, match="actions: drain, eject, restart"):
        check_action("explode", "engine-0")


@pytest.mark.parametrize(
    ("action", "backlog"),
    [("pause", None), ("reset_brake", "skip"), ("reset_brake", "replay")],
)
def test_a_choice_for_the_backlog_belongs_to_a_reset(action: str, backlog: str | None) -> None:
    """And to nothing else."""
    check_backlog(action, backlog)


@pytest.mark.parametrize(
    ("action", "backlog", "told"),
    [
        ("pause", "skip", "leave it out"),
        ("reset_brake", None, "--backlog skip"),
        ("reset_brake", "some", "--backlog replay"),
    ],
)
def test_a_wrong_choice_for_the_backlog_is_told(
    action: str, backlog: str | None, told: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(CtlError, match=told):
        check_backlog(action, backlog)


def test_the_pool_comes_from_the_instance() -> None:
    """Another one is an error, not a silent no-op."""
    instance = {"instance_id": "engine-0", "pool": "chat"}
    assert pool_of_instance(instance, None) == "chat"
    assert pool_of_instance(instance, "chat") == "chat"
    with pytest.raises(CtlError, match="in pool 'chat', not in 'code'"):
        pool_of_instance(instance, "code")


@pytest.mark.parametrize(
    ("known", "given", "pool"),
    [(["chat", "chat"], None, "chat"), (["chat", "code"], "code", "code")],
)
def test_the_only_pool_needs_no_name(known: list[str], given: str | None, pool: str) -> None:
    """With several, the operator says which."""
    assert pool_to_hold(known, given) == pool


@pytest.mark.parametrize(
    ("known", "given"), [(["chat", "code"], None), (["chat"], "code"), ([], None), ([], "code")]
)
def test_an_unclear_pool_is_asked_for(known: list[str], given: str | None) -> None:
    """Pausing the wrong one would be worse."""
    with pytest.raises(CtlError, match="known pools"):
        pool_to_hold(known, given)


def test_a_request_carries_who_and_why() -> None:
    """For the history."""
    reset = build_request("reset_brake", "chat", None, NOW, by="ann", reason="", backlog="replay")
    assert (reset.backlog, reset.key()) == ("replay", "request.v1.reset_brake.chat")
    request = build_request("drain", "chat", "engine-0", NOW, by="ann", reason="noise")
    assert (request.requested_by, request.reason, request.key()) == (
        "ann",
        "noise",
        "request.v1.drain.chat",
    )


def test_a_field_out_of_bounds_is_named() -> None:
    """Before anything is sent."""
    with pytest.raises(CtlError, match="reason"):
        build_request("drain", "chat", "engine-0", NOW, by="ann", reason="x" * 501)


def test_a_ceiling_goes_with_set_weight() -> None:
    """And with nothing else; 0 is one too."""
    check_weight("set_weight", 0.0)
    check_weight("drain", None)
    with pytest.raises(CtlError, match="--weight 0"):
        check_weight("set_weight", None)
    with pytest.raises(CtlError, match="leave it out"):
        check_weight("drain", 0.5)


def test_a_ceiling_and_a_version_are_sent() -> None:
    """What is out of bounds is named."""
    common: dict[str, Any] = {"by": "ann", "reason": ""}
    assert build_request("set_weight", "chat", "e", NOW, weight=0.5, **common).weight == 0.5
    request = build_request("roll_back", "chat", None, NOW, model_version="v2", **common)
    assert request.model_version == "v2"
    with pytest.raises(CtlError, match="weight: Input should be less"):
        build_request("set_weight", "chat", "e", NOW, weight=2.0, **common)
    with pytest.raises(CtlError, match="model_version: goes with action 'roll_back' of a whole"):
        build_request("roll_back", "chat", "e", NOW, model_version="v2", **common)
