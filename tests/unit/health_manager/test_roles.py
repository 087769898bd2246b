"""Who may ask for what."""

import pytest
from pydantic import ValidationError

from gatemesh_health_manager.roles import NOT_PROVEN, Role, role_faults, why_not_allowed

from .samples import asked

ROLES = {
    "oncall": Role(actions=frozenset({"drain", "restart"}), pools=frozenset({"chat"})),
    "admin": Role(actions=frozenset({"*"})),
}
OPERATORS = {
    "alice": frozenset({"admin"}),
    "bob": frozenset({"oncall"}),
    "carol": frozenset[str](),
    "dave": frozenset({"gone"}),
}


@pytest.mark.parametrize(
    ("user", "action", "pool", "why"),
    [
        pytest.param("alice", "reset_brake", "code", None, id="everything"),
        pytest.param("bob", "drain", "chat", None, id="in-role"),
        pytest.param("bob", "drain", "code", "none for drain in pool 'code'", id="other-pool"),
        pytest.param("bob", "eject", "chat", "has the roles oncall, none for", id="other-action"),
        pytest.param("carol", "drain", "chat", "'carol' has no role", id="no-role"),
        pytest.param("dave", "drain", "chat", "has the roles gone, none", id="unknown-role"),
        pytest.param("eve", "drain", "chat", "'eve' is not among the operators", id="stranger"),
        pytest.param(None, "drain", "chat", NOT_PROVEN, id="not-proven"),
    ],
)
def test_a_role_is_needed(user: str | None, action: str, pool: str, why: str | None) -> None:
    """Of a proven user, for this action, on this pool; the refusal says which is missing."""
    fields = {"instance_id": None, "backlog": "skip"} if action == "reset_brake" else {}
    request = asked(action, proven_user=user, **fields)
    told = why_not_allowed(ROLES, OPERATORS, request, pool)
    assert (told is None) is (why is None)
    assert (why or "") in (told or "")


def test_without_operators_whoever_may_publish_may_ask() -> None:
    """As in earlier releases; an empty table is another thing."""
    request = asked("restart")
    assert why_not_allowed({}, None, request, "chat") is None
    assert why_not_allowed({}, {}, request, "chat") == NOT_PROVEN


@pytest.mark.parametrize("fields", [{"actions": []}, {"actions": ["fly"]}, {"pools": ["chat"]}])
def test_a_role_names_known_actions(fields: dict[str, list[str]]) -> None:
    """A typing mistake must not be a role that allows nothing."""
    with pytest.raises(ValidationError, match="actions"):
        Role.model_validate(fields)


def test_faults_between_the_tables_are_found() -> None:
    """With their places."""
    assert list(role_faults(ROLES, OPERATORS)) == [
        (("operators", "dave"), "there is no role 'gone'; known roles: admin, oncall")
    ]
    assert [place for place, _ in role_faults(ROLES, None)] == [
        ("roles", "oncall"),
        ("roles", "admin"),
    ]
    assert list(role_faults({}, None)) == []
